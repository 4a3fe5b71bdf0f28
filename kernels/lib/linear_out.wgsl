// Where a Linear's results go: out[:, OUT_OFFSET + i] = residual + SCALE * (bias + sum), for the
// rows [FIRST_ROW, FIRST_ROW + ROWS) of the matrix that this dispatch has.
@group(0) @binding(1) var<storage, read_write> out: array<f32>;
@group(0) @binding(4) var<storage, read> bias: array<f32>;      // used with BIAS
@group(0) @binding(5) var<storage, read> residual: array<f32>;  // used with RESIDUAL

fn store(column: u32, row: u32, sum: f32) {
  let i = FIRST_ROW + row;
  var result = sum;
  if (BIAS) {
    result = result + bias[i];
  }
  if (RESIDUAL) {
    result = fma(SCALE, result, residual[column * RESIDUAL_STRIDE + i]);
  } else {
    result = SCALE * result;
  }
  out[column * OUT_STRIDE + OUT_OFFSET + i] = result;
}
