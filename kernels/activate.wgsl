// out = act(x). Includes: out/* (with lib/reduce_* for q8). Dispatch: x over vectors of 4, y over rows.
//! include lib/step.wgsl
//! include lib/activation.wgsl
@group(0) @binding(2) var<storage, read> x: array<vec4<f32>>;

@compute @workgroup_size(WORKGROUP_X)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
  let i = wid.x * WORKGROUP_X + lid;
  let valid = i < VECTORS;
  var v = vec4<f32>();
  if (valid) {
    let a = x[wid.y * X_STRIDE4 + i];
    v = vec4<f32>(activate(a.x), activate(a.y), activate(a.z), activate(a.w));
  }
  emit(wid.y, i, v, valid, lid);
}
