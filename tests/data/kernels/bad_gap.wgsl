@group(0) @binding(1) var<storage, read> a: array<u32>;
@compute @workgroup_size(1)
fn main() {}
