// Linear and ExpertLinear, prefill class, on cooperative matrices of 16 x 16 halves: 128 rows of a
// matrix times TILE_COLS columns a workgroup of 256 invocations, in rounds of 64 elements. While a round is
// multiplied, the invocations hold the weights and inputs of the next. Each subgroup of 32 has
// 16 TILES_Y rows by 32 columns. Every sum runs over the elements in their order, 16 a step,
// whatever the tile. Nothing is done with what was loaded before the round that needs it: compilers
// keep such work where it stands, and the subgroup waits there.
// Includes: codec, lib/group_halves_*, lib/x_parts_*, and lib/matrix_columns or experts/matrix_columns,
// which say what the tile's rows and columns are. Dispatch: x over rows, y over tiles of columns.
//! include lib/step.wgsl

const PITCH = 18u;  // vectors of a row of 64 elements, and two against bank conflicts

var<workgroup> w_tile: array<vec4<f16>, 128u * PITCH>;       // [row][element / 4]
var<workgroup> x_tile: array<vec4<f16>, TILE_COLS * PITCH>;  // [column][element / 4]
var<workgroup> results: array<f32, 8u * 256u>;               // [subgroup][column][row]

// A part of group `group`: zeros beyond the last one.
fn present(part: vec4<f16>, group: u32) -> vec4<f16> {
  if (GROUPS % 2u == 0u) {
    return part;
  }
  return select(vec4<f16>(), part, group < GROUPS);
}

@compute @workgroup_size(WORKGROUP_X)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
  let subgroup = lid / 32u;
  let sub_row = subgroup % (8u / TILES_Y) * 16u * TILES_Y;  // this subgroup's part of the tile
  let sub_col = subgroup / (8u / TILES_Y) * 32u;
  let w_row = weight_row(wid, lid / 2u);
  let w_at = (lid / 2u) * PITCH + (lid % 2u) * 8u;
  let x_at = lid / 16u * PITCH + lid % 16u;

  var w = load_group(w_row, min(lid % 2u, GROUPS - 1u));
  //! unroll i X_PARTS
  let x_row_$i = input_row(wid, lid / 16u + $i * 16u);
  var part_$i = load_part(x_row_$i, lid % 16u);
  //! end
  //! unroll y TILES_Y
  var c_$y_0 = coop_mat16x16<f32, C>();
  var c_$y_1 = coop_mat16x16<f32, C>();
  //! end
  let groups = select(0u, GROUPS, tile_columns(wid) > 0u);
  for (var group = 0u; group < groups; group = group + 2u) {
    let halves = group_halves(w);
    //! unroll j 8
    w_tile[w_at + $j] = halves[$j];
    //! end
    //! unroll i X_PARTS
    x_tile[x_at + $i * 16u * PITCH] = present(part_halves(part_$i), group + lid % 16u / 8u);
    //! end
    workgroupBarrier();
    w = load_group(w_row, min(group + 2u + lid % 2u, GROUPS - 1u));
    //! unroll i X_PARTS
    part_$i = load_part(x_row_$i, (group + 2u) * 8u + lid % 16u);
    //! end
    for (var k = 0u; k < 16u; k = k + 4u) {
      let b_0 = coopLoad<coop_mat16x16<f16, B>>(&x_tile[sub_col * PITCH + k], PITCH);
      let b_1 = coopLoad<coop_mat16x16<f16, B>>(&x_tile[(sub_col + 16u) * PITCH + k], PITCH);
      //! unroll y TILES_Y
      let a_$y = coopLoadT<coop_mat16x16<f16, A>>(&w_tile[(sub_row + $y * 16u) * PITCH + k], PITCH);
      c_$y_0 = coopMultiplyAdd(a_$y, b_0, c_$y_0);
      c_$y_1 = coopMultiplyAdd(a_$y, b_1, c_$y_1);
      //! end
    }
    workgroupBarrier();
  }
  let at = subgroup * 256u;
  //! unroll y TILES_Y
  //! unroll x 2
  coopStore(c_$y_$x, &results[at], 16u);
  write_tile(wid, at, sub_row + $y * 16u, sub_col + $x * 16u, lid);
  //! end
  //! end
}

// Stores the 16 x 16 results of each subgroup from `row` and `column` of the tile on. All invocations
// call.
fn write_tile(wid: vec3<u32>, at: u32, row: u32, column: u32, lid: u32) {
  workgroupBarrier();
  let columns = tile_columns(wid);
  for (var j = lid % 32u / 16u; j < 16u; j = j + 2u) {
    if (column + j < columns) {
      put(wid, row + lid % 16u, column + j, results[at + j * 16u + lid % 16u]);
    }
  }
  workgroupBarrier();
}
