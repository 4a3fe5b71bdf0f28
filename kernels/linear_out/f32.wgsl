// The results as they are, one an invocation.
//! include lib/linear_out.wgsl

// What an invocation's result needs beside the sum, to be loaded before the sums are made.
struct Early {
  of_bias: f32,
  of_residual: f32,
}

// The row of the matrix that is row `i` of all tiles.
fn source_row(i: u32) -> u32 {
  return i;
}

fn load_early(col0: u32, row0: u32, columns: u32, lid: u32) -> Early {
  let row = min(row0 + lid % TILE_ROWS, ROWS - 1u);
  return Early(row_bias(row), row_residual(min(col0 + lid / TILE_ROWS, columns - 1u), row));
}

fn finish(early: Early, col0: u32, row0: u32, columns: u32, lid: u32) {
  let column = col0 + lid / TILE_ROWS;
  let row = row0 + lid % TILE_ROWS;
  if (lid < COL_TILE * TILE_ROWS && row < ROWS && column < columns) {
    put(column, row, linear_result(total(lid), early.of_bias, early.of_residual));
  }
}
