// Conv, decode class: the columns of a run one after another, with the last inputs in registers.
// Includes: out/* (with lib/reduce_* for q8). Dispatch: x over vectors of 4 channels, y over runs.
//! include conv/input.wgsl
@group(0) @binding(5) var<storage, read_write> states: array<vec4<f32>>;
@group(0) @binding(6) var<storage, read> runs: array<vec4<u32>>;

@compute @workgroup_size(WORKGROUP_X)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
  let i = wid.x * WORKGROUP_X + lid;
  let valid = i < VECTORS;
  let run = runs[wid.y];
  //! unroll age BEFORE
  var in_$age = vec4<f32>();
  if (valid && run.w > 0u) {
    in_$age = states[state_at(run.z, BEFORE - 1u - $age, i)];
  }
  //! end
  for (var c = 0u; c < run.y; c = c + 1u) {
    var v = vec4<f32>();
    if (valid) {
      var next = input_at(run.x + c, i);
      v = fma(conv_weight[BEFORE * VECTORS + i], next, bias_at(i));
      //! unroll age BEFORE
      v = fma(conv_weight[(BEFORE - 1u - $age) * VECTORS + i], in_$age, v);
      let older_$age = in_$age;
      in_$age = next;
      next = older_$age;
      //! end
      v = result_of(v, run.x + c, i);
    }
    emit(run.x + c, i, v, valid, lid);
  }
  if (!valid) {
    return;
  }
  //! unroll age BEFORE
  states[state_at(run.z, BEFORE - 1u - $age, i)] = in_$age;
  //! end
}
