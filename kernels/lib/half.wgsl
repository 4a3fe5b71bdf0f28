// Rounding to 16-bit floats, the same on every device: to nearest, ties to even, saturating at
// +-65504, NaN kept. The results are f32 values that a half holds exactly (below 2^-14 they keep
// more digits than a half has).
fn half_round(v: f32) -> f32 {
  let bits = bitcast<u32>(v);
  let rounded = bitcast<f32>((bits + 0xfffu + ((bits >> 13u) & 1u)) & 0xffffe000u);
  let magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) {
    return v;
  }
  return select(rounded, select(-65504.0, 65504.0, bits < 0x80000000u), magnitude >= 0x477ff000u);
}

fn half_round4(v: vec4<f32>) -> vec4<f32> {
  return vec4<f32>(half_round(v.x), half_round(v.y), half_round(v.z), half_round(v.w));
}
