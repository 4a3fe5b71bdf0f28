// A Linear's sum with the bias of its row.
@group(0) @binding(4) var<storage, read> bias: array<f32>;  // used with BIAS

fn with_bias(row: u32, sum: f32) -> f32 {
  if (BIAS) {
    return sum + bias[FIRST_ROW + row];
  }
  return sum;
}
