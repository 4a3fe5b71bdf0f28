// A Linear's result from its sum: residual + SCALE * (bias + sum), for row `row` of the rows
// [FIRST_ROW, FIRST_ROW + ROWS) of the matrix that this dispatch has.
//! include lib/linear_bias.wgsl
@group(0) @binding(5) var<storage, read> residual: array<f32>;  // used with RESIDUAL

fn linear_result(column: u32, row: u32, sum: f32) -> f32 {
  let result = with_bias(row, sum);
  if (RESIDUAL) {
    return fma(SCALE, result, residual[column * RESIDUAL_STRIDE + FIRST_ROW + row]);
  }
  return SCALE * result;
}
