// out = act(max(gate - cut, 0)) * up of a row's halves, where cut is the gates' mean and CUTOFF of their
// standard deviations. Includes: out/*, lib/reduce_*. Dispatch: y over rows, each a workgroup.
//! include lib/step.wgsl
//! include lib/activation.wgsl
@group(0) @binding(2) var<storage, read> x: array<f32>;

fn gated(at: u32, element: u32, cut: f32) -> f32 {
  let i = min(element, WIDTH - 1u);  // a width that 4 does not divide ends in padding
  return activate(relu(x[at + i] - cut)) * x[at + WIDTH + i];
}

@compute @workgroup_size(WORKGROUP_X)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
  let at = wid.y * X_STRIDE;
  var sum = 0.0;
  for (var i = lid; i < WIDTH; i = i + WORKGROUP_X) {
    sum = sum + x[at + i];
  }
  let mean = workgroup_sum(sum, lid) * (1.0 / f32(WIDTH));
  var squares = 0.0;
  for (var i = lid; i < WIDTH; i = i + WORKGROUP_X) {
    let d = x[at + i] - mean;
    squares = fma(d, d, squares);
  }
  let cut = fma(CUTOFF, sqrt(workgroup_sum(squares, lid) * (1.0 / f32(WIDTH))), mean);
  for (var start = 0u; start * 4u < WIDTH; start = start + WORKGROUP_X) {
    let i = start + lid;
    let valid = i * 4u < WIDTH;
    var v = vec4<f32>();
    if (valid) {
      v = vec4<f32>(gated(at, i * 4u, cut), gated(at, i * 4u + 1u, cut), gated(at, i * 4u + 2u, cut),
                    gated(at, i * 4u + 3u, cut));
    }
    emit(wid.y, i, v, valid, lid);
  }
}
