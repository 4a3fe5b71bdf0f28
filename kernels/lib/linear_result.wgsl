// A Linear's result from its sum: residual + SCALE * (bias + sum), for row `row` of the rows
// [FIRST_ROW, FIRST_ROW + ROWS) of the matrix that this dispatch has.
@group(0) @binding(4) var<storage, read> bias: array<f32>;      // used with BIAS
@group(0) @binding(5) var<storage, read> residual: array<f32>;  // used with RESIDUAL

fn row_bias(row: u32) -> f32 {
  if (BIAS) {
    return bias[FIRST_ROW + row];
  }
  return 0.0;
}

fn row_residual(column: u32, row: u32) -> f32 {
  if (RESIDUAL) {
    return residual[column * RESIDUAL_STRIDE + FIRST_ROW + row];
  }
  return 0.0;
}

fn linear_result(sum: f32, of_bias: f32, of_residual: f32) -> f32 {
  var result = sum;
  if (BIAS) {
    result = result + of_bias;
  }
  if (RESIDUAL) {
    return fma(SCALE, result, of_residual);
  }
  return SCALE * result;
}
