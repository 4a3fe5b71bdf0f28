// The results x as they are and, for the RMS norm that follows, q8 rows of x * (weight +
// NORM_OFFSET) with the sums of squares of x: the factor 1 / RMS is left to the reader (X_RMS).
//! include lib/linear_out.wgsl
//! include lib/q8_block.wgsl
@group(0) @binding(7) var<storage, read> norm_weight: array<f32>;
@group(0) @binding(8) var<storage, read_write> normed: array<u32>;

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
    var y = vec4<f32>();
    if (valid) {
      v = vec4<f32>(store(column, row, total(i)), store(column, row + 1u, total(i + 1u)),
                    store(column, row + 2u, total(i + 2u)), store(column, row + 3u, total(i + 3u)));
      y = v;
      if (NORM_WEIGHT) {
        y = v * (vec4<f32>(norm_weight[row], norm_weight[row + 1u], norm_weight[row + 2u],
                           norm_weight[row + 3u]) + vec4<f32>(NORM_OFFSET));
      }
    }
    let square = octet_sum_f32(fma(v.x, v.x, v.y * v.y) + fma(v.z, v.z, v.w * v.w), lid);
    let q = q8_block(y, lid);
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
}
