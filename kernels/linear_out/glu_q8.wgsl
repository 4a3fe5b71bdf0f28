// act(result[i]) * result[i + ROWS / 2] as q8 rows. Rows 2 i and 2 i + 1 of the tiles are the rows i
// and i + ROWS / 2 of the matrix.
//! include lib/linear_result.wgsl
//! include lib/activation.wgsl
//! include out/q8.wgsl

// The row of the matrix that is row `i` of all tiles.
fn source_row(i: u32) -> u32 {
  return i / 2u + (i % 2u) * (ROWS / 2u);
}

// Element `row` from the results 2 i and 2 i + 1 of the tile.
fn gated(column: u32, row: u32, i: u32) -> f32 {
  return activate(linear_result(column, row, total(i))) *
         linear_result(column, row + ROWS / 2u, total(i + 1u));
}

fn finish(col0: u32, row0: u32, columns: u32, lid: u32) {
  for (var start = 0u; start < COL_TILE * TILE_ROWS; start = start + WORKGROUP_X * 8u) {
    let i = start + lid * 8u;
    let column = col0 + i / TILE_ROWS;
    let row = (row0 + i % TILE_ROWS) / 2u;
    let valid = i < COL_TILE * TILE_ROWS && row < ROWS / 2u && column < columns;
    var v = vec4<f32>();
    if (valid) {
      v = vec4<f32>(gated(column, row, i), gated(column, row + 1u, i + 2u),
                    gated(column, row + 2u, i + 4u), gated(column, row + 3u, i + 6u));
    }
    emit(column, row / 4u, v, valid, lid);
  }
}
