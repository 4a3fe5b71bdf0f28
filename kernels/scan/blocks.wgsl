// Scan, prefill class: as scan/run.wgsl, with what BLOCK columns read in workgroup memory; all channels of
// a workgroup are of one group. The same order of sums.
// Includes: lib/reduce_*. Dispatch: x over channels, y over runs.
//! include lib/step.wgsl
//! include lib/softplus.wgsl
//! include scan/inputs.wgsl
var<workgroup> steps: array<f32, BLOCK * OWN>;
var<workgroup> values: array<f32, BLOCK * OWN>;
var<workgroup> of_b: array<f32, BLOCK * STATE_SIZE>;
var<workgroup> of_c: array<f32, BLOCK * STATE_SIZE>;

@compute @workgroup_size(WORKGROUP_X)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
  let own = lid / TEAM;
  let channel = wid.x * OWN + own;
  let lane = lid % TEAM;
  let run = runs[wid.y];
  let head = head_of(channel);
  let group = group_of(wid.x * OWN);
  let state = run.z * STATE_STRIDE + channel * STATE_SIZE;
  //! unroll r EACH
  var h_$r = 0.0;
  var rate_$r = 0.0;
  if (lane + $r * TEAM < STATE_SIZE) {
    rate_$r = rate_at(head, lane + $r * TEAM);
    if (run.w > 0u) {
      h_$r = states[state + lane + $r * TEAM];
    }
  }
  //! end
  for (var begin = run.x; begin < run.x + run.y; begin = begin + BLOCK) {
    let columns = min(BLOCK, run.x + run.y - begin);
    workgroupBarrier();
    for (var i = lid; i < columns * OWN; i = i + WORKGROUP_X) {
      steps[i] = step_at(begin + i / OWN, head_of(wid.x * OWN + i % OWN));
      values[i] = x[(begin + i / OWN) * X_STRIDE + wid.x * OWN + i % OWN];
    }
    for (var i = lid; i < columns * STATE_SIZE; i = i + WORKGROUP_X) {
      let at = (begin + i / STATE_SIZE) * BC_STRIDE + group + i % STATE_SIZE;
      of_b[i] = bc[at + B_OFFSET];
      of_c[i] = bc[at + C_OFFSET];
    }
    workgroupBarrier();
    for (var c = 0u; c < columns; c = c + 1u) {
      let step = steps[c * OWN + own];
      let value = values[c * OWN + own];
      let at = c * STATE_SIZE + lane;
      var sum = 0.0;
      //! unroll r EACH
      if (lane + $r * TEAM < STATE_SIZE) {
        h_$r = fma(exp(step * rate_$r), h_$r, step * value * of_b[at + $r * TEAM]);
        sum = fma(of_c[at + $r * TEAM], h_$r, sum);
      }
      //! end
      sum = team_sum(sum, lid);
      if (lane == 0u) {
        out[(begin + c) * OUT_STRIDE + channel] = fma(skip[head], value, sum);
      }
    }
  }
  //! unroll r EACH
  if (lane + $r * TEAM < STATE_SIZE) {
    states[state + lane + $r * TEAM] = h_$r;
  }
  //! end
}
