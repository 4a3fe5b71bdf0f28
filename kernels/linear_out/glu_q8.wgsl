// act(result[i]) * result[i + ROWS / 2] as q8 rows, four an invocation. Rows 2 i and 2 i + 1 of the
// tiles are the rows i and i + ROWS / 2 of the matrix.
//! include lib/linear_result.wgsl
//! include lib/activation.wgsl
//! include out/q8.wgsl

// What an invocation's results need beside the sums, to be loaded before those are made.
struct Early {
  gate_bias: vec4<f32>,
  up_bias: vec4<f32>,
}

// The row of the matrix that is row `i` of all tiles.
fn source_row(i: u32) -> u32 {
  return i / 2u + (i % 2u) * (ROWS / 2u);
}

fn load_early(col0: u32, row0: u32, columns: u32, lid: u32) -> Early {
  let row = min((row0 + lid * 8u % TILE_ROWS) / 2u, ROWS / 2u - 4u);
  var early = Early();
  //! unroll i 4
  early.gate_bias[$i] = row_bias(row + $i);
  early.up_bias[$i] = row_bias(row + ROWS / 2u + $i);
  //! end
  return early;
}

fn finish(early: Early, col0: u32, row0: u32, columns: u32, lid: u32) {
  let at = lid * 8u;
  let column = col0 + at / TILE_ROWS;
  let row = (row0 + at % TILE_ROWS) / 2u;
  let valid = at < COL_TILE * TILE_ROWS && row < ROWS / 2u && column < columns;
  var v = vec4<f32>();
  if (valid) {
    //! unroll i 4
    v[$i] = activate(linear_result(total(at + 2u * $i), early.gate_bias[$i], 0.0)) *
            linear_result(total(at + 2u * $i + 1u), early.up_bias[$i], 0.0);
    //! end
  }
  emit(column, row / 4u, v, valid, lid);
}
