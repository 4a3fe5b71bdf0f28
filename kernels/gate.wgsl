// out[i] = x[X_OFFSET + i] * act(gate[GATE_OFFSET + i]); with ROW_GATE the first element of a row of gate holds for
// all of x. X_OFFSET4 and GATE_OFFSET4 count vectors.
// Includes: out/* (with lib/reduce_* for q8). Dispatch: x over vectors of 4, y over rows.
//! include lib/step.wgsl
//! include lib/activation.wgsl
@group(0) @binding(2) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> gate: array<vec4<f32>>;

@compute @workgroup_size(WORKGROUP_X)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
  let i = wid.x * WORKGROUP_X + lid;
  let valid = i < VECTORS;
  var v = vec4<f32>();
  if (valid) {
    var g: vec4<f32>;
    if (ROW_GATE) {
      g = vec4<f32>(gate[wid.y * GATE_STRIDE4].x);
    } else {
      g = gate[wid.y * GATE_STRIDE4 + GATE_OFFSET4 + i];
    }
    v = x[wid.y * X_STRIDE4 + X_OFFSET4 + i] *
        vec4<f32>(activate(g.x), activate(g.y), activate(g.z), activate(g.w));
  }
  emit(wid.y, i, v, valid, lid);
}
