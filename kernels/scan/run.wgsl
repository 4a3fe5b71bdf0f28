// Scan: the columns of a run one after another, the state in registers: a team of TEAM invocations
// has a channel, each of them every TEAM-th element. The state is read once and written once.
// Includes: lib/reduce_*. Dispatch: x over channels, y over runs.
//! include lib/step.wgsl
//! include lib/softplus.wgsl
@group(0) @binding(1) var<storage, read_write> out: array<f32>;
@group(0) @binding(2) var<storage, read_write> states: array<f32>;
@group(0) @binding(3) var<storage, read> x: array<f32>;
@group(0) @binding(4) var<storage, read> dt: array<f32>;
@group(0) @binding(5) var<storage, read> bc: array<f32>;
@group(0) @binding(6) var<storage, read> rate: array<f32>;  // [HEADS][RATE_STRIDE]
@group(0) @binding(7) var<storage, read> dt_bias: array<f32>;
@group(0) @binding(8) var<storage, read> skip: array<f32>;
@group(0) @binding(9) var<storage, read> runs: array<vec4<u32>>;

@compute @workgroup_size(WORKGROUP_X)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
  let channel = wid.x * (WORKGROUP_X / TEAM) + lid / TEAM;
  let valid = channel < CHANNELS;
  let own = min(channel, CHANNELS - 1u);
  let lane = lid % TEAM;
  let run = runs[wid.y];
  let head = own / (CHANNELS / HEADS);
  let group = head / (HEADS / GROUPS) * STATE_SIZE;
  let state = run.z * STATE_STRIDE + own * STATE_SIZE;
  //! unroll r EACH
  var h_$r = 0.0;
  var rate_$r = 0.0;
  if (lane + $r * TEAM < STATE_SIZE) {
    rate_$r = rate[head * RATE_STRIDE + select(lane + $r * TEAM, 0u, ONE_RATE)];
    if (run.w > 0u) {
      h_$r = states[state + lane + $r * TEAM];
    }
  }
  //! end
  for (var c = run.x; c < run.x + run.y; c = c + 1u) {
    let raw = softplus(dt[c * DT_STRIDE + DT_OFFSET + head] + dt_bias[head]);
    let low = select(raw, DT_MIN, raw < DT_MIN);
    let step = select(low, DT_MAX, low > DT_MAX);
    let value = x[c * X_STRIDE + own];
    let at = c * BC_STRIDE + group + lane;
    var sum = 0.0;
    //! unroll r EACH
    if (lane + $r * TEAM < STATE_SIZE) {
      h_$r = fma(exp(step * rate_$r), h_$r, step * value * bc[at + B_OFFSET + $r * TEAM]);
      sum = fma(bc[at + C_OFFSET + $r * TEAM], h_$r, sum);
    }
    //! end
    sum = team_sum(sum, lid);
    if (lane == 0u && valid) {
      out[c * OUT_STRIDE + channel] = fma(skip[head], value, sum);
    }
  }
  if (!valid) {
    return;
  }
  //! unroll r EACH
  if (lane + $r * TEAM < STATE_SIZE) {
    states[state + lane + $r * TEAM] = h_$r;
  }
  //! end
}
