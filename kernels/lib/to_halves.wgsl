// Halves for cooperative matrices: saturating, NaN kept. Needs f16.
//! include lib/nan.wgsl
fn to_halves(v: vec4<f32>) -> vec4<f16> {
  return vec4<f16>(select(clamp(v, vec4<f32>(-65504.0), vec4<f32>(65504.0)), v, is_nan4(v)));
}
