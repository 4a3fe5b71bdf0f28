// An f32 row as int8 blocks of 32. Includes: lib/reduce_*, out/q8.
// Dispatch: x over vectors of 4, y over rows.
//! include lib/step.wgsl
//! include lib/x_f32.wgsl
@group(0) @binding(2) var<storage, read> x: array<vec4<f32>>;

@compute @workgroup_size(WORKGROUP_X)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
  let i = wid.x * WORKGROUP_X + lid;
  let valid = i < COLS / 4u;
  var v = vec4<f32>();
  if (valid) {
    v = load_x4(wid.y, i);
  }
  emit(wid.y, i, v, valid, lid);
}
