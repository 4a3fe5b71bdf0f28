// As linear_decode_q8.wgsl, with the same bits, for COL_TILE = 8 columns: in rounds of TEAM groups of
// them, which the teams of a workgroup (at least 8 TEAM invocations) share in workgroup memory. While
// a round is multiplied, the next one's groups are on their way. A tile with more rows than the teams
// hold at once (TEAM_ROWS each) takes several passes.
// Includes: codec, lib/dot_*, lib/reduce_*, lib/scatter_*, linear_out/*.
// Dispatch: x and z over tiles of rows, y over tiles of columns; taken with the columns first, so that
// a row of the matrix comes from memory once.
//! include lib/step.wgsl
//! include lib/x_q8.wgsl
//! include lib/linear_tile.wgsl

const PASS_ROWS = WORKGROUP_X / TEAM * TEAM_ROWS;

// [round & 1][column][lane]
var<workgroup> x_lo: array<vec4<u32>, 16u * TEAM>;
var<workgroup> x_hi: array<vec4<u32>, 16u * TEAM>;
var<workgroup> x_scales: array<vec2<u32>, 16u * TEAM>;  // d and the sum

@compute @workgroup_size(WORKGROUP_X)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lid: u32) {
  let lane = lid % TEAM;
  let own = lid / TEAM * TEAM_ROWS;
  let tile = wid.x + count.x * (wid.y + count.y * wid.z);
  let row0 = tile / count.y * TILE_ROWS;
  let col0 = tile % count.y * COL_TILE;
  let columns = row_count();
  load_rms_factors(col0, columns, lid);
  let copied_column = min(col0 + lid / TEAM % 8u, columns - 1u);
  var copied_group = min(lane, GROUPS - 1u);
  var copied = load_x_bits(copied_column, copied_group);
  var round = 0u;
  for (var pass_row = 0u; pass_row < TILE_ROWS; pass_row = pass_row + PASS_ROWS) {
    //! unroll r TEAM_ROWS
    let row_$r = source_row(min(row0 + pass_row + own + $r, ROWS - 1u));
    //! unroll c 8
    var acc_$r_$c = 0.0;
    //! end
    //! end
    for (var first = 0u; first < GROUPS; first = first + TEAM) {
      let group = first + lane;
      let buffer = (round & 1u) * 8u * TEAM;
      round = round + 1u;
      //! unroll r TEAM_ROWS
      let w_$r = load_group(row_$r, min(group, GROUPS - 1u));
      //! end
      if (lid < 8u * TEAM) {
        x_lo[buffer + lid] = copied.lo;
        x_hi[buffer + lid] = copied.hi;
        x_scales[buffer + lid] = scale_bits(copied, copied_group);
      }
      workgroupBarrier();
      // The next pass begins anew.
      copied_group = min(select(lane, group + TEAM, first + TEAM < GROUPS), GROUPS - 1u);
      copied = load_x_bits(copied_column, copied_group);
      if (GROUPS % TEAM == 0u || group < GROUPS) {
        //! unroll c 8
        let scale_$c = x_scales[buffer + $c * TEAM + lane];
        let x_$c = XGroup(x_lo[buffer + $c * TEAM + lane], x_hi[buffer + $c * TEAM + lane],
                          bitcast<f32>(scale_$c.x), bitcast<i32>(scale_$c.y));
        //! unroll r TEAM_ROWS
        acc_$r_$c = group_dot(w_$r, x_$c, acc_$r_$c);
        //! end
        //! end
      }
    }
    //! unroll r TEAM_ROWS
    let sum_$r = team_scatter(vec4<f32>(acc_$r_0, acc_$r_1, acc_$r_2, acc_$r_3),
                              vec4<f32>(acc_$r_4, acc_$r_5, acc_$r_6, acc_$r_7), lid);
    if (lane % (TEAM / 8u) == 0u) {
      results[lane / (TEAM / 8u) * TILE_ROWS + pass_row + own + $r] = sum_$r;
    }
    //! end
  }
  workgroupBarrier();
  finish(col0, row0, columns, lid);
}
