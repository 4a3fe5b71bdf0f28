// out = residual + SCALE * sum over the TOP_K chosen experts, best first, of their weight * x[:, s].
// Dispatch: x over elements, y over rows.
//! include lib/step.wgsl
@group(0) @binding(1) var<storage, read_write> out: array<f32>;
@group(0) @binding(2) var<storage, read> x: array<f32>;
@group(0) @binding(3) var<storage, read> routes: array<f32>;    // [row][experts' numbers, weights]
@group(0) @binding(4) var<storage, read> residual: array<f32>;  // used with RESIDUAL

@compute @workgroup_size(WORKGROUP_X)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
  let i = wid.x * WORKGROUP_X + lid;
  if (i >= WIDTH) {
    return;
  }
  var sum = 0.0;
  for (var s = 0u; s < TOP_K; s = s + 1u) {
    sum = fma(routes[wid.y * ROUTES_STRIDE + TOP_K + s], x[wid.y * X_STRIDE + s * WIDTH + i], sum);
  }
  let at = wid.y * OUT_STRIDE + i;
  if (RESIDUAL) {
    out[at] = fma(SCALE, sum, residual[at]);
  } else {
    out[at] = SCALE * sum;
  }
}
