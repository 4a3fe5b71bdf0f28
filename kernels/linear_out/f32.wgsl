// The results as they are.
//! include lib/linear_out.wgsl

// The row of the matrix that is row `i` of all tiles.
fn source_row(i: u32) -> u32 {
  return i;
}

fn finish(col0: u32, row0: u32, columns: u32, lid: u32) {
  for (var i = lid; i < COL_TILE * TILE_ROWS; i = i + WORKGROUP_X) {
    let column = col0 + i / TILE_ROWS;
    let row = row0 + i % TILE_ROWS;
    if (row < ROWS && column < columns) {
      store(column, row, total(i));
    }
  }
}
