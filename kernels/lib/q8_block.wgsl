// Four values of a block of 32 as int8: d = max|v| / 127, q = round(v / d). The eight invocations of
// an octet hold a block. A block with a NaN or an infinity gets d = NaN or infinity. Needs reduce.
// A row of a q8 value has the first 16 quants of each block, then the last 16 of each, so that
// neighbouring lanes read neighbouring vectors; then d and the sum of the quants of each block.
struct Q8Block {
  quants: u32,  // of the invocation's four values
  d: f32,       // of the block
  sum: i32,     // of the block's quants
}

fn q8_block(v: vec4<f32>, lid: u32) -> Q8Block {
  let magnitude = bitcast<vec4<u32>>(v) & vec4<u32>(0x7fffffffu);
  let largest =
      octet_max(max(max(magnitude.x, magnitude.y), max(magnitude.z, magnitude.w)), lid);
  let d = bitcast<f32>(largest) / 127.0;
  // Below the least normal number 1 / d could be infinite: such a block counts as zeros.
  let inverse = select(0.0, 1.0 / d, d >= 1.17549435e-38);
  let q = clamp(vec4<i32>(round(v * inverse)), vec4<i32>(-127), vec4<i32>(127));
  let b = bitcast<vec4<u32>>(q) & vec4<u32>(0xffu);
  return Q8Block(b.x | (b.y << 8u) | (b.z << 16u) | (b.w << 24u), d,
                 octet_sum((q.x + q.y) + (q.z + q.w), lid));
}

// The word of a row of `width` elements that holds the four quants from element 4 i on.
fn q8_word(i: u32, width: u32) -> u32 {
  return i / 8u * 4u + i % 4u + (i & 4u) / 4u * (width / 8u);
}
