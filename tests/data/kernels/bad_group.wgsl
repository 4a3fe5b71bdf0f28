@group(1) @binding(0) var<storage, read> a: array<u32>;
@compute @workgroup_size(1)
fn main() {}
