// Where a Linear's results go: out[:, OUT_OFFSET + FIRST_ROW + row].
//! include lib/linear_result.wgsl
@group(0) @binding(1) var<storage, read_write> out: array<f32>;

fn store(column: u32, row: u32, sum: f32) -> f32 {
  let result = linear_result(column, row, sum);
  out[column * OUT_STRIDE + OUT_OFFSET + FIRST_ROW + row] = result;
  return result;
}
