// Conv, prefill class: what the state keeps of a run of columns.
// Dispatch: x over vectors of 4 channels, y over runs.
//! include conv/input.wgsl
@group(0) @binding(5) var<storage, read_write> states: array<vec4<f32>>;
@group(0) @binding(6) var<storage, read> runs: array<vec4<u32>>;

@compute @workgroup_size(WORKGROUP_X)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
  let i = wid.x * WORKGROUP_X + lid;
  if (i >= VECTORS) {
    return;
  }
  let run = runs[wid.y];
  //! unroll t BEFORE
  var kept_$t = vec4<f32>();
  if (run.y + $t >= BEFORE) {
    kept_$t = input_at(run.x + run.y + $t - BEFORE, i);
  } else if (run.w > 0u) {
    kept_$t = states[state_at(run.z, $t + run.y, i)];
  }
  //! end
  //! unroll t BEFORE
  states[state_at(run.z, $t, i)] = kept_$t;
  //! end
}
