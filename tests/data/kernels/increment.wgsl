@group(0) @binding(0) var<storage, read_write> value: array<u32>;
@compute @workgroup_size(1)
fn main() { value[0] = value[0] * 3u + VARIANT; }
