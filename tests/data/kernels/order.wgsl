@group(0) @binding(7) var<storage, read_write> b: array<u32>;
@group(0) @binding(7) var<storage, read> a: array<u32>;  // why
@compute @workgroup_size(1)
fn main() {}
