// What the kernels of DeltaNet read beside queries, keys and values.
//! include lib/softplus.wgsl
@group(0) @binding(4) var<storage, read> gates: array<f32>;
@group(0) @binding(5) var<storage, read> rate: array<f32>;
@group(0) @binding(6) var<storage, read> dt_bias: array<f32>;
@group(0) @binding(7) var<storage, read> runs: array<vec4<u32>>;

const VECTORS = VALUE_DIM / 4u;  // of a head's values

fn key_head_of(head: u32) -> u32 {
  return select(head / (HEADS / KEY_HEADS), head % KEY_HEADS, TILED);
}

fn gate_at(column: u32, head: u32) -> u32 {
  return column * GATES_STRIDE + GATES_OFFSET + head;
}

fn log_decay_at(column: u32, head: u32) -> f32 {
  return rate[head] * softplus(gates[gate_at(column, head) + HEADS] + dt_bias[head]);
}

fn beta_at(column: u32, head: u32) -> f32 {
  return 1.0 / (1.0 + exp(-gates[gate_at(column, head)]));
}
