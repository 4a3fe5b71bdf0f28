// As linear_decode_q8.wgsl, with the same bits, for COL_TILE = 8 columns.
// Includes: codec, lib/dot_*, lib/reduce_*, lib/scatter_*, linear_out/*.
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
  //! unroll c 8
  let column_$c = min(col0 + $c, columns - 1u);
  //! end
  //! unroll r TEAM_ROWS
  let row_$r = source_row(min(row0 + own + $r, ROWS - 1u));
  //! unroll c 8
  var acc_$r_$c = 0.0;
  //! end
  //! end
  for (var group = lane; group < GROUPS; group = group + TEAM) {
    //! unroll r TEAM_ROWS
    let w_$r = load_group(row_$r, group);
    //! end
    //! unroll c 8
    let x_$c = load_x(column_$c, group);
    //! unroll r TEAM_ROWS
    acc_$r_$c = group_dot(w_$r, x_$c, acc_$r_$c);
    //! end
    //! end
  }
  //! unroll r TEAM_ROWS
  let sum_$r = team_scatter(vec4<f32>(acc_$r_0, acc_$r_1, acc_$r_2, acc_$r_3),
                            vec4<f32>(acc_$r_4, acc_$r_5, acc_$r_6, acc_$r_7), lid);
  if (lane % (TEAM / 8u) == 0u) {
    results[lane / (TEAM / 8u) * TILE_ROWS + own + $r] = sum_$r;
  }
  //! end
  workgroupBarrier();
  finish(col0, row0, columns, lid);
}
