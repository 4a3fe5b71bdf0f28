// Linear, prefill class, on cooperative matrices of 16 x 16 halves: 128 rows of the matrix times
// TILE_COLS columns a workgroup of 256 invocations, in rounds of 64 elements. While a round is
// multiplied, the invocations hold the weights and inputs of the next. Each subgroup of 32 has
// 16 TILES_Y rows by 32 columns. Every sum runs over the elements in their order, 16 a step,
// whatever the tile.
// Includes: codec. Dispatch: x over rows, y over columns.
//! include lib/step.wgsl
//! include lib/to_halves.wgsl
//! include lib/x_f32.wgsl
//! include lib/linear_out.wgsl
@group(0) @binding(6) var<storage, read> x: array<vec4<f32>>;

const PITCH = 18u;  // vectors of a row of 64 elements, and two against bank conflicts
const TILES_Y = TILE_COLS / 32u;
const X_PARTS = TILE_COLS / 16u;  // vectors of the inputs an invocation loads

var<workgroup> w_tile: array<vec4<f16>, 128u * PITCH>;       // [row][element / 4]
var<workgroup> x_tile: array<vec4<f16>, TILE_COLS * PITCH>;  // [column][element / 4]
var<workgroup> results: array<f32, 8u * 256u>;               // [subgroup][column][row]

@compute @workgroup_size(WORKGROUP_X)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
  let row0 = wid.x * 128u;
  let col0 = wid.y * TILE_COLS;
  let columns = row_count();
  let subgroup = lid / 32u;
  let sub_row = subgroup % (8u / TILES_Y) * 16u * TILES_Y;  // this subgroup's part of the tile
  let sub_col = subgroup / (8u / TILES_Y) * 32u;
  let w_row = min(row0 + lid / 2u, ROWS - 1u);
  let w_at = (lid / 2u) * PITCH + (lid % 2u) * 8u;

  var w = load_group(w_row, min(lid % 2u, GROUPS - 1u));
  var parts: array<vec4<f32>, X_PARTS>;
  for (var i = 0u; i < X_PARTS; i = i + 1u) {
    parts[i] = load_part(lid + i * 256u, 0u, col0, columns);
  }
  // Written out: compilers keep an array of matrices in memory.
  var c00 = coop_mat16x16<f32, C>();
  var c01 = coop_mat16x16<f32, C>();
  var c10 = coop_mat16x16<f32, C>();
  var c11 = coop_mat16x16<f32, C>();
  var c20 = coop_mat16x16<f32, C>();
  var c21 = coop_mat16x16<f32, C>();
  var c30 = coop_mat16x16<f32, C>();
  var c31 = coop_mat16x16<f32, C>();
  for (var group = 0u; group < GROUPS; group = group + 2u) {
    let floats = group_floats(w);
    w_tile[w_at] = to_halves(floats[0]);
    w_tile[w_at + 1u] = to_halves(floats[1]);
    w_tile[w_at + 2u] = to_halves(floats[2]);
    w_tile[w_at + 3u] = to_halves(floats[3]);
    w_tile[w_at + 4u] = to_halves(floats[4]);
    w_tile[w_at + 5u] = to_halves(floats[5]);
    w_tile[w_at + 6u] = to_halves(floats[6]);
    w_tile[w_at + 7u] = to_halves(floats[7]);
    for (var i = 0u; i < X_PARTS; i = i + 1u) {
      let part = lid + i * 256u;
      x_tile[part / 16u * PITCH + part % 16u] = to_halves(parts[i]);
    }
    workgroupBarrier();
    w = load_group(w_row, min(group + 2u + lid % 2u, GROUPS - 1u));
    for (var i = 0u; i < X_PARTS; i = i + 1u) {
      parts[i] = load_part(lid + i * 256u, group + 2u, col0, columns);
    }
    for (var k = 0u; k < 16u; k = k + 4u) {
      let b0 = coopLoad<coop_mat16x16<f16, B>>(&x_tile[sub_col * PITCH + k], PITCH);
      let b1 = coopLoad<coop_mat16x16<f16, B>>(&x_tile[(sub_col + 16u) * PITCH + k], PITCH);
      let a0 = coopLoadT<coop_mat16x16<f16, A>>(&w_tile[sub_row * PITCH + k], PITCH);
      c00 = coopMultiplyAdd(a0, b0, c00);
      c01 = coopMultiplyAdd(a0, b1, c01);
      if (TILES_Y > 1u) {
        let a1 = coopLoadT<coop_mat16x16<f16, A>>(&w_tile[(sub_row + 16u) * PITCH + k], PITCH);
        c10 = coopMultiplyAdd(a1, b0, c10);
        c11 = coopMultiplyAdd(a1, b1, c11);
      }
      if (TILES_Y > 2u) {
        let a2 = coopLoadT<coop_mat16x16<f16, A>>(&w_tile[(sub_row + 32u) * PITCH + k], PITCH);
        c20 = coopMultiplyAdd(a2, b0, c20);
        c21 = coopMultiplyAdd(a2, b1, c21);
        let a3 = coopLoadT<coop_mat16x16<f16, A>>(&w_tile[(sub_row + 48u) * PITCH + k], PITCH);
        c30 = coopMultiplyAdd(a3, b0, c30);
        c31 = coopMultiplyAdd(a3, b1, c31);
      }
    }
    workgroupBarrier();
  }
  let at = subgroup * 256u;
  coopStore(c00, &results[at], 16u);
  write_tile(at, row0 + sub_row, col0 + sub_col, columns, lid);
  coopStore(c01, &results[at], 16u);
  write_tile(at, row0 + sub_row, col0 + sub_col + 16u, columns, lid);
  if (TILES_Y > 1u) {
    coopStore(c10, &results[at], 16u);
    write_tile(at, row0 + sub_row + 16u, col0 + sub_col, columns, lid);
    coopStore(c11, &results[at], 16u);
    write_tile(at, row0 + sub_row + 16u, col0 + sub_col + 16u, columns, lid);
  }
  if (TILES_Y > 2u) {
    coopStore(c20, &results[at], 16u);
    write_tile(at, row0 + sub_row + 32u, col0 + sub_col, columns, lid);
    coopStore(c21, &results[at], 16u);
    write_tile(at, row0 + sub_row + 32u, col0 + sub_col + 16u, columns, lid);
    coopStore(c30, &results[at], 16u);
    write_tile(at, row0 + sub_row + 48u, col0 + sub_col, columns, lid);
    coopStore(c31, &results[at], 16u);
    write_tile(at, row0 + sub_row + 48u, col0 + sub_col + 16u, columns, lid);
  }
}

// Stores the 16 x 16 results of each subgroup from `row` and `column` on. All invocations call.
fn write_tile(at: u32, row: u32, column: u32, columns: u32, lid: u32) {
  workgroupBarrier();
  let r = row + lid % 16u;
  for (var j = lid % 32u / 16u; j < 16u; j = j + 2u) {
    if (r < ROWS && column + j < columns) {
      store(column + j, r, results[at + j * 16u + lid % 16u]);
    }
  }
  workgroupBarrier();
}

// Vector `part` of the tile of inputs of groups `group` and `group` + 1; zero beyond the last group.
fn load_part(part: u32, group: u32, col0: u32, columns: u32) -> vec4<f32> {
  let i = group * 8u + part % 16u;
  let v = load_x4(min(col0 + part / 16u, columns - 1u), min(i, GROUPS * 8u - 1u));
  return select(vec4<f32>(), v, i < GROUPS * 8u);
}
