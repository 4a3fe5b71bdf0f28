@group(0) @binding(0) var<storage, read_write> result: array<u32>;

@compute @workgroup_size(1)
fn main() {
  result[0] = u32(MINUS);
  result[1] = BIG;
  result[2] = bitcast<u32>(TENTH);
  result[3] = select(0u, 1u, YES) + select(0u, 2u, NO);
  result[4] = bitcast<u32>(WHOLE);
  result[5] = u32(LEAST);
}
