//! params P
struct P { a: vec4<u32> }
@compute @workgroup_size(1)
fn main() {}
