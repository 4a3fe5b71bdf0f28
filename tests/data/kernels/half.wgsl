@group(0) @binding(0) var<storage, read_write> value: array<u32>;
@compute @workgroup_size(1)
fn main() { value[0] = u32(f16(3.0) * f16(2.0)); }
