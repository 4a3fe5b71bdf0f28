// Of each group of 2 * GROUP elements: out = act(gate) * (up + UP_OFFSET) of its halves; with LIMIT > 0
// gate is at most LIMIT and up within +-LIMIT. Includes: out/* (with lib/reduce_* for q8).
// Dispatch: x over vectors of 4, y over rows.
//! include lib/step.wgsl
//! include lib/activation.wgsl
@group(0) @binding(2) var<storage, read> x: array<f32>;

fn act(gate: f32) -> f32 {
  if (ALPHA != 1.0) {  // silu only
    return gate / (1.0 + exp(-ALPHA * gate));
  }
  return activate(gate);
}

fn gated(row: u32, element: u32) -> f32 {
  let i = min(element, WIDTH - 1u);  // a width that 4 does not divide ends in padding
  let at = row * X_STRIDE + i + i / GROUP * GROUP;
  var gate = x[at];
  var up = x[at + GROUP];
  if (LIMIT > 0.0) {
    gate = select(min(gate, LIMIT), gate, is_nan(gate));
    up = select(clamp(up, -LIMIT, LIMIT), up, is_nan(up));
  }
  if (UP_OFFSET != 0.0) {
    up = up + UP_OFFSET;
  }
  return act(gate) * up;
}

@compute @workgroup_size(WORKGROUP_X)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
  let i = wid.x * WORKGROUP_X + lid;
  let valid = i * 4u < WIDTH;
  var v = vec4<f32>();
  if (valid) {
    v = vec4<f32>(gated(wid.y, i * 4u), gated(wid.y, i * 4u + 1u), gated(wid.y, i * 4u + 2u),
                  gated(wid.y, i * 4u + 3u));
  }
  emit(wid.y, i, v, valid, lid);
}
