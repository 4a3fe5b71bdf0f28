// The results are [q heads | k heads | v heads], of which q and k are normalised (Q_NORM, K_NORM: root
// mean square of a head; tiles of rows hold whole heads then) and rotated by the column's position, as
// in rope_kv.wgsl: q goes to out, k and v to the KV pages. Rows of the tiles are put in order so that
// each four hold two pairs of a rotation (i, i + ROTARY_DIM / 2), or four neighbours.
// Includes: kv/write_*, lib/reduce_*.
//! include lib/linear_bias.wgsl
//! include lib/rotate.wgsl
//! include kv/pages.wgsl
@group(0) @binding(1) var<storage, read_write> out: array<f32>;
@group(0) @binding(7) var<storage, read> q_norm: array<f32>;
@group(0) @binding(8) var<storage, read> k_norm: array<f32>;

const K_AT = HEADS * HEAD_DIM;
const V_AT = K_AT + KV_HEADS * HEAD_DIM;
const BLOCKS = (TILE_ROWS + 31u) / 32u;  // of 32 rows of a tile

var<workgroup> squares: array<f32, COL_TILE * BLOCKS>;  // [column][block]: sums of squares, used with norms

// The row of the matrix that is row `i` of all tiles.
fn source_row(i: u32) -> u32 {
  let d = i % HEAD_DIM;
  if (INTERLEAVED || i >= V_AT || d >= ROTARY_DIM) {
    return i;
  }
  return i - d + d / 2u + d % 2u * (ROTARY_DIM / 2u);
}

// Elements d and d + 1 of the q or k head of row `i`.
fn put_head(column: u32, i: u32, d: u32, a: f32, b: f32) {
  if (i < K_AT) {
    let at = column * OUT_STRIDE + i / HEAD_DIM * HEAD_DIM + d;
    out[at] = a;
    out[at + 1u] = b;
  } else {
    put_key(kv_row(columns[column].z, columns[column].y, (i - K_AT) / HEAD_DIM) * KEY_STRIDE + d, a, b);
  }
}

// Rows i..i + 3 of all tiles.
fn put_four(column: u32, i: u32, v: vec4<f32>) {
  let position = columns[column].y;
  if (i >= V_AT) {
    let row = kv_row(columns[column].z, position, (i - V_AT) / VALUE_DIM) * VALUE_STRIDE;
    let d = (i - V_AT) % VALUE_DIM;
    put_value(row + d, v.x, v.y);
    put_value(row + d + 2u, v.z, v.w);
    return;
  }
  let d = i % HEAD_DIM;
  if (d >= ROTARY_DIM) {
    put_head(column, i, d, v.x, v.y);
    put_head(column, i, d + 2u, v.z, v.w);
    return;
  }
  let pair = d / 2u;
  let one = rotated(v.x, v.y, pair, position);
  let two = rotated(v.z, v.w, pair + 1u, position);
  if (INTERLEAVED) {
    put_head(column, i, d, one.x, one.y);
    put_head(column, i, d + 2u, two.x, two.y);
  } else {
    put_head(column, i, pair, one.x, two.x);
    put_head(column, i, pair + ROTARY_DIM / 2u, one.y, two.y);
  }
}

fn result(i: u32, at: u32) -> f32 {
  return SCALE * with_bias(source_row(i), total(at));
}

// Rows i..i + 3 of all tiles, that are the results from `at` on.
fn four_results(i: u32, at: u32) -> vec4<f32> {
  return vec4<f32>(result(i, at), result(i + 1u, at + 1u), result(i + 2u, at + 2u),
                   result(i + 3u, at + 3u));
}

// What the norm multiplies row `i` of all tiles by, beside its head's factor.
fn norm_weight(i: u32) -> f32 {
  let row = source_row(i);
  let d = row % HEAD_DIM;
  if (i < K_AT) {
    return q_norm[row / HEAD_DIM * Q_NORM_STRIDE + d] + WEIGHT_OFFSET;
  }
  return k_norm[(row - K_AT) / HEAD_DIM * K_NORM_STRIDE + d] + WEIGHT_OFFSET;
}

// The rows i..i + 3 of a tile's column after the norm of their head.
fn normalised(i: u32, column: u32, v: vec4<f32>) -> vec4<f32> {
  if (i >= V_AT || (i < K_AT && !Q_NORM) || (i >= K_AT && !K_NORM)) {
    return v;
  }
  var sum = 0.0;
  let first = column * BLOCKS + i % TILE_ROWS / HEAD_DIM * (HEAD_DIM / 32u);
  for (var block = first; block < first + HEAD_DIM / 32u; block = block + 1u) {
    sum = sum + squares[block];
  }
  let factor = 1.0 / sqrt(fma(sum, 1.0 / f32(HEAD_DIM), NORM_EPS));
  return v * factor *
         vec4<f32>(norm_weight(i), norm_weight(i + 1u), norm_weight(i + 2u), norm_weight(i + 3u));
}

fn sum_squares(row0: u32, lid: u32) {
  for (var start = 0u; start < COL_TILE * TILE_ROWS; start = start + WORKGROUP_X * 4u) {
    let at = start + lid * 4u;
    let valid = at < COL_TILE * TILE_ROWS && row0 + at % TILE_ROWS < ROWS;
    var v = vec4<f32>();
    if (valid) {
      v = four_results(row0 + at % TILE_ROWS, at);
    }
    let sum = octet_sum_f32(fma(v.x, v.x, v.y * v.y) + fma(v.z, v.z, v.w * v.w), lid);
    if (valid && at % 32u == 0u) {
      squares[at / 32u] = sum;
    }
  }
  workgroupBarrier();
}

fn finish(col0: u32, row0: u32, count: u32, lid: u32) {
  if (Q_NORM || K_NORM) {
    sum_squares(row0, lid);
  }
  for (var at = lid * 4u; at < COL_TILE * TILE_ROWS; at = at + WORKGROUP_X * 4u) {
    let column = at / TILE_ROWS;
    let i = row0 + at % TILE_ROWS;
    if (i < ROWS && col0 + column < count) {
      var v = four_results(i, at);
      if (Q_NORM || K_NORM) {
        v = normalised(i, column, v);
      }
      put_four(col0 + column, i, v);
    }
  }
}
