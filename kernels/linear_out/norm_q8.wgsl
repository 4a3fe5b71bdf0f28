// The results as they are, and for the norm that follows.
//! include lib/linear_out.wgsl
//! include lib/normed_q8.wgsl

// The row of the matrix that is row `i` of all tiles.
fn source_row(i: u32) -> u32 {
  return i;
}

fn finish(col0: u32, row0: u32, columns: u32, lid: u32) {
  for (var start = 0u; start < COL_TILE * TILE_ROWS; start = start + WORKGROUP_X * 4u) {
    let i = start + lid * 4u;
    let column = col0 + i / TILE_ROWS;
    let row = row0 + i % TILE_ROWS;
    let valid = i < COL_TILE * TILE_ROWS && row < ROWS && column < columns;
    var v = vec4<f32>();
    if (valid) {
      v = vec4<f32>(store(column, row, total(i)), store(column, row + 1u, total(i + 1u)),
                    store(column, row + 2u, total(i + 2u)), store(column, row + 3u, total(i + 3u)));
    }
    emit_normed(column, row, v, valid, lid);
  }
}
