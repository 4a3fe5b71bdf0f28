// What the kernels of Scan read.
@group(0) @binding(1) var<storage, read_write> out: array<f32>;
@group(0) @binding(2) var<storage, read_write> states: array<f32>;
@group(0) @binding(3) var<storage, read> x: array<f32>;
@group(0) @binding(4) var<storage, read> dt: array<f32>;
@group(0) @binding(5) var<storage, read> bc: array<f32>;
@group(0) @binding(6) var<storage, read> rate: array<f32>;  // [HEADS][RATE_STRIDE]
@group(0) @binding(7) var<storage, read> dt_bias: array<f32>;
@group(0) @binding(8) var<storage, read> skip: array<f32>;
@group(0) @binding(9) var<storage, read> runs: array<vec4<u32>>;

fn head_of(channel: u32) -> u32 {
  return channel / (CHANNELS / HEADS);
}

// Where B and C of a channel's group begin.
fn group_of(channel: u32) -> u32 {
  return head_of(channel) / (HEADS / GROUPS) * STATE_SIZE;
}

fn rate_at(head: u32, n: u32) -> f32 {
  return rate[head * RATE_STRIDE + select(n, 0u, ONE_RATE)];
}

// The time step of a head.
fn step_at(column: u32, head: u32) -> f32 {
  let raw = softplus(dt[column * DT_STRIDE + DT_OFFSET + head] + dt_bias[head]);
  let low = select(raw, DT_MIN, raw < DT_MIN);
  return select(low, DT_MAX, low > DT_MAX);
}
