// Where a Linear's results go: out[:, OUT_OFFSET + FIRST_ROW + row].
//! include lib/linear_result.wgsl
@group(0) @binding(1) var<storage, read_write> out: array<f32>;

fn put(column: u32, row: u32, result: f32) {
  out[column * OUT_STRIDE + OUT_OFFSET + FIRST_ROW + row] = result;
}

fn store(column: u32, row: u32, sum: f32) {
  put(column, row, linear_result(sum, row_bias(row), row_residual(column, row)));
}
