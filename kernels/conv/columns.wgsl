// Conv, prefill class: all columns at once; conv/state.wgsl then keeps the last inputs.
// Includes: out/* (with lib/reduce_* for q8). Dispatch: x over vectors of 4 channels, y over columns.
//! include conv/input.wgsl
@group(0) @binding(5) var<storage, read> states: array<vec4<f32>>;
@group(0) @binding(6) var<storage, read> columns: array<vec4<u32>>;

@compute @workgroup_size(WORKGROUP_X)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
  let i = wid.x * WORKGROUP_X + lid;
  let valid = i < VECTORS;
  var v = vec4<f32>();
  if (valid) {
    let position = columns[wid.y].y;
    let slot = columns[wid.y].z;
    let in_run = columns[wid.y].w;
    v = bias_at(i);
    //! unroll age TAPS
    if ($age <= in_run) {
      v = fma(conv_weight[(BEFORE - $age) * VECTORS + i], input_at(wid.y - $age, i), v);
    } else if (position > in_run) {
      let kept = states[state_at(slot, BEFORE + in_run - $age, i)];
      v = fma(conv_weight[(BEFORE - $age) * VECTORS + i], kept, v);
    }
    //! end
    v = result_of(v, wid.y, i);
  }
  emit(wid.y, i, v, valid, lid);
}
