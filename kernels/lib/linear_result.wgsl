// A Linear's result from its sum: residual + SCALE * (bias + sum), for row `row` of the rows
// [FIRST_ROW, FIRST_ROW + ROWS) of the matrix that this dispatch has.
@group(0) @binding(4) var<storage, read> bias: array<f32>;      // used with BIAS
@group(0) @binding(5) var<storage, read> residual: array<f32>;  // used with RESIDUAL

fn linear_result(column: u32, row: u32, sum: f32) -> f32 {
  let i = FIRST_ROW + row;
  var result = sum;
  if (BIAS) {
    result = result + bias[i];
  }
  if (RESIDUAL) {
    return fma(SCALE, result, residual[column * RESIDUAL_STRIDE + i]);
  }
  return SCALE * result;
}
