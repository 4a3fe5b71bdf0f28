//! The C functions of both crates, in one static library.

pub use text_rs;
pub use webgpu_rs;
