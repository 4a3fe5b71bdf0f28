//! The functions of webgpu.h and wgpu.h that wisp calls, over the crate `wgpu`, with its experimental
//! features enabled, and what include/wisp_webgpu.h adds.
//!
//! All of them are unsafe in the way C is: handles are null or valid, pointers are what the headers
//! say. Beyond that no call ends the process: every error and every panic becomes a call of the
//! device's uncaptured-error callback inside the failing call, on the calling thread.
#![allow(non_snake_case, clippy::missing_safety_doc)]

pub mod adapter;
pub mod buffer;
pub mod device;
pub mod encoder;
pub mod features;
pub mod limits;
mod object;
pub mod pipeline;
pub mod queue;
pub mod types;
