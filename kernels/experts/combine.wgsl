// out = residual + SCALE * sum over the TOP_K chosen experts, best first, of their weight * x[:, s].
// Includes: experts/combined_f32 or combined_norm, what becomes of the results.
// Dispatch: x over vectors of 4, y over rows.
//! include lib/step.wgsl
@group(0) @binding(1) var<storage, read_write> out: array<f32>;
@group(0) @binding(2) var<storage, read> x: array<f32>;
@group(0) @binding(3) var<storage, read> routes: array<f32>;    // [row][experts' numbers, weights]
@group(0) @binding(4) var<storage, read> residual: array<f32>;  // used with RESIDUAL

// Stores element `i` of a row.
fn combined(row: u32, i: u32) -> f32 {
  if (i >= WIDTH) {
    return 0.0;
  }
  var sum = 0.0;
  for (var s = 0u; s < TOP_K; s = s + 1u) {
    sum = fma(routes[row * ROUTES_STRIDE + TOP_K + s], x[row * X_STRIDE + s * WIDTH + i], sum);
  }
  let at = row * OUT_STRIDE + i;
  var result = SCALE * sum;
  if (RESIDUAL) {
    result = fma(SCALE, sum, residual[at]);
  }
  out[at] = result;
  return result;
}

@compute @workgroup_size(WORKGROUP_X)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
  let i = (wid.x * WORKGROUP_X + lid) * 4u;
  let v = vec4<f32>(combined(wid.y, i), combined(wid.y, i + 1u), combined(wid.y, i + 2u),
                    combined(wid.y, i + 3u));
  finish(wid.y, i, v, i < WIDTH, lid);
}
