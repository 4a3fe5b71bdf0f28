// The results are [q heads | k heads | v heads], of which q and k are rotated by the column's position
// (as in rope_kv.wgsl): q goes to out, k and v to the KV pages. Rows of the tiles are put in order so
// that each four hold two pairs of a rotation (i, i + ROTARY_DIM / 2), or four neighbours.
// Includes: kv/write_*.
//! include lib/linear_bias.wgsl
//! include lib/rotate.wgsl
//! include kv/pages.wgsl
@group(0) @binding(1) var<storage, read_write> out: array<f32>;

const K_AT = HEADS * HEAD_DIM;
const V_AT = K_AT + KV_HEADS * HEAD_DIM;

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

fn finish(col0: u32, row0: u32, count: u32, lid: u32) {
  for (var at = lid * 4u; at < COL_TILE * TILE_ROWS; at = at + WORKGROUP_X * 4u) {
    let column = col0 + at / TILE_ROWS;
    let i = row0 + at % TILE_ROWS;
    if (i < ROWS && column < count) {
      put_four(column, i, vec4<f32>(result(i, at), result(i + 1u, at + 1u), result(i + 2u, at + 2u),
                                    result(i + 3u, at + 3u)));
    }
  }
}
