// Of all streams q: s_q + (1 + coefs[q]) * (y - s_0), and the first of these times scale. Dispatch: x
// over vectors of 4 of a stream, y over rows.
//! include lib/step.wgsl
@group(0) @binding(1) var<storage, read_write> out: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> out_rest: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> scaled: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> first: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read> rest: array<vec4<f32>>;
@group(0) @binding(6) var<storage, read> y: array<vec4<f32>>;
@group(0) @binding(7) var<storage, read> coefs: array<f32>;
@group(0) @binding(8) var<storage, read> scale: array<vec4<f32>>;

@compute @workgroup_size(WORKGROUP_X)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
  let i = wid.x * WORKGROUP_X + lid;
  if (i >= WIDTH4) {
    return;
  }
  let at = wid.y * COEFS_STRIDE;
  let row = wid.y * WIDTH4 + i;
  let rest_row = wid.y * WIDTH4 * OTHERS + i;
  let difference = y[row] - first[row];
  let corrected = fma(vec4<f32>(1.0 + coefs[at]), difference, first[row]);
  out[row] = corrected;
  scaled[row] = corrected * scale[i];
  //! unroll p OTHERS
  out_rest[rest_row + $p * WIDTH4] =
      fma(vec4<f32>(1.0 + coefs[at + 1u + $p]), difference, rest[rest_row + $p * WIDTH4]);
  //! end
}
