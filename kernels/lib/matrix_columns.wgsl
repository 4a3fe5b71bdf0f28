// Tiles of linear_prefill_matrix.wgsl for a Linear: 128 rows of the matrix, columns of the step.
//! include lib/linear_out.wgsl

// How many of the tile's columns there are.
fn tile_columns(wid: vec3<u32>) -> u32 {
  return min(row_count() - wid.y * TILE_COLS, TILE_COLS);
}

// The rows of the weights and of x that are row `r` and column `c` of the tile; the last ones again
// beyond the end.
fn weight_row(wid: vec3<u32>, r: u32) -> u32 {
  return min(wid.x * 128u + r, ROWS - 1u);
}

fn input_row(wid: vec3<u32>, c: u32) -> u32 {
  return min(wid.y * TILE_COLS + c, row_count() - 1u);
}

fn put(wid: vec3<u32>, r: u32, c: u32, sum: f32) {
  let row = wid.x * 128u + r;
  if (row < ROWS) {
    store(wid.y * TILE_COLS + c, row, sum);
  }
}
