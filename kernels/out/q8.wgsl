// Results as q8 rows: int8 [OUT_WIDTH], then f32 d and int32 sums for each block of 32. The eight
// invocations of an octet hold a block. A block with a NaN or an infinity gets d = NaN or infinity.
// Needs reduce.
@group(0) @binding(1) var<storage, read_write> out: array<u32>;

// Elements 4 i.. of a row; all invocations call, whole octets with valid = false where there is no
// block.
fn emit(row: u32, i: u32, v: vec4<f32>, valid: bool, lid: u32) {
  let magnitude = bitcast<vec4<u32>>(v) & vec4<u32>(0x7fffffffu);
  let largest =
      octet_max(max(max(magnitude.x, magnitude.y), max(magnitude.z, magnitude.w)), lid);
  let d = bitcast<f32>(largest) / 127.0;
  // Below the least normal number 1 / d could be infinite: such a block counts as zeros.
  let inverse = select(0.0, 1.0 / d, d >= 1.17549435e-38);
  let q = clamp(vec4<i32>(round(v * inverse)), vec4<i32>(-127), vec4<i32>(127));
  let sum = octet_sum((q.x + q.y) + (q.z + q.w), lid);
  if (valid) {
    let word = row * OUT_STRIDE;
    let b = bitcast<vec4<u32>>(q) & vec4<u32>(0xffu);
    out[word + i] = b.x | (b.y << 8u) | (b.z << 16u) | (b.w << 24u);
    if (i % 8u == 0u) {
      out[word + OUT_WIDTH / 4u + i / 8u] = bitcast<u32>(d);
      out[word + OUT_WIDTH / 4u + OUT_WIDTH / 32u + i / 8u] = bitcast<u32>(sum);
    }
  }
}
