// The results x as they are and, for the RMS norm that follows, q8 rows of x * (weight +
// NORM_OFFSET) with the sums of squares of x: the factor 1 / RMS is left to the reader (X_RMS). Four
// results an invocation.
//! include lib/linear_out.wgsl
//! include lib/q8_block.wgsl
@group(0) @binding(7) var<storage, read> norm_weight: array<f32>;
@group(0) @binding(8) var<storage, read_write> normed: array<u32>;

// What an invocation's results need beside the sums, to be loaded before those are made.
struct Early {
  of_bias: vec4<f32>,
  of_residual: vec4<f32>,
  weight: vec4<f32>,
}

// The row of the matrix that is row `i` of all tiles.
fn source_row(i: u32) -> u32 {
  return i;
}

fn load_early(col0: u32, row0: u32, columns: u32, lid: u32) -> Early {
  let column = min(col0 + lid * 4u / TILE_ROWS, columns - 1u);
  let row = min(row0 + lid * 4u % TILE_ROWS, ROWS - 4u);
  var early = Early();
  //! unroll i 4
  early.of_bias[$i] = row_bias(row + $i);
  early.of_residual[$i] = row_residual(column, row + $i);
  early.weight[$i] = 1.0;
  if (NORM_WEIGHT) {
    early.weight[$i] = norm_weight[row + $i] + NORM_OFFSET;
  }
  //! end
  return early;
}

fn finish(early: Early, col0: u32, row0: u32, columns: u32, lid: u32) {
  let at = lid * 4u;
  let column = col0 + at / TILE_ROWS;
  let row = row0 + at % TILE_ROWS;
  let valid = at < COL_TILE * TILE_ROWS && row < ROWS && column < columns;
  var v = vec4<f32>();
  if (valid) {
    //! unroll i 4
    v[$i] = linear_result(total(at + $i), early.of_bias[$i], early.of_residual[$i]);
    put(column, row + $i, v[$i]);
    //! end
  }
  let square = octet_sum_f32(fma(v.x, v.x, v.y * v.y) + fma(v.z, v.z, v.w * v.w), lid);
  let q = q8_block(v * early.weight, lid);
  if (valid) {
    let word = column * NORMED_STRIDE;
    normed[word + q8_word(row / 4u, ROWS)] = q.quants;
    if (row % 32u == 0u) {
      let pair = word + ROWS / 4u + row / 16u;
      normed[pair] = bitcast<u32>(q.d);
      normed[pair + 1u] = bitcast<u32>(q.sum);
      normed[word + ROWS / 4u + ROWS / 16u + row / 32u] = bitcast<u32>(square);
    }
  }
}
