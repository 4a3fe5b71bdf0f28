// Linear, decode class, activations in int8 blocks of 32: exact integer sums of each block, scaled
// and added in f32. A team of TEAM invocations holds TEAM_ROWS rows of the matrix against COL_TILE
// columns; lane l takes the groups of 32 elements l, l + TEAM, ... in their order, UNROLL of them
// loaded at a time, then the lanes are added. The order of a row's sum depends on its length only.
// Includes: codec, lib/dot_*, lib/reduce_*, linear_out/*.
// Dispatch: x and z over tiles of rows, y over tiles of columns.
//! include lib/step.wgsl
//! include lib/x_q8.wgsl
//! include lib/linear_tile.wgsl

@compute @workgroup_size(WORKGROUP_X)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lid: u32) {
  let lane = lid % TEAM;
  let own = lid / TEAM * TEAM_ROWS;
  let row0 = (wid.x + wid.z * count.x) * TILE_ROWS;
  let col0 = wid.y * COL_TILE;
  let columns = row_count();
  load_rms_factors(col0, columns, lid);
  //! unroll c COL_TILE
  let column_$c = min(col0 + $c, columns - 1u);
  //! end
  //! unroll r TEAM_ROWS
  let row_$r = source_row(min(row0 + own + $r, ROWS - 1u));
  //! unroll c COL_TILE
  var acc_$r_$c = 0.0;
  //! end
  //! end
  for (var first = lane; first < GROUPS; first = first + TEAM * UNROLL) {
    //! unroll u UNROLL
    let group_$u = min(first + $u * TEAM, GROUPS - 1u);
    //! unroll r TEAM_ROWS
    let w_$u_$r = load_group(row_$r, group_$u);
    //! end
    //! end
    //! unroll u UNROLL
    if (GROUPS % (TEAM * UNROLL) == 0u || first + $u * TEAM < GROUPS) {
      //! unroll c COL_TILE
      let x_$c = load_x(column_$c, group_$u);
      //! unroll r TEAM_ROWS
      acc_$r_$c = group_dot(w_$u_$r, x_$c, acc_$r_$c);
      //! end
      //! end
    }
    //! end
  }
  //! unroll r TEAM_ROWS
  //! unroll c COL_TILE
  let sum_$r_$c = team_sum(acc_$r_$c, lid);
  if (lane == ($r * COL_TILE + $c) % TEAM) {
    results[$c * TILE_ROWS + own + $r] = sum_$r_$c;
  }
  //! end
  //! end
  workgroupBarrier();
  finish(col0, row0, columns, lid);
}
