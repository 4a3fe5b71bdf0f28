// ExpertLinear, activations in int8 blocks of 32: as linear_decode_q8.wgsl for the matrix of an expert
// and COL_TILE items of it. The order of a row's sum depends on its length only.
// Includes: codec, lib/dot_*, lib/reduce_*, experts/direct or grouped.
// Dispatch: x over rows of a matrix, y and z over tiles of items.
//! include lib/step.wgsl
//! include lib/x_q8.wgsl
//! include experts/rows.wgsl

@compute @workgroup_size(WORKGROUP_X)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
  let lane = lid % TEAM;
  let row0 = (wid.x * (WORKGROUP_X / TEAM) + lid / TEAM) * TEAM_ROWS;
  let items = tile_items(wid);
  let expert = tile_expert(wid);
  //! unroll c COL_TILE
  let item_$c = tile_item(wid, $c);
  let first_$c = item_$c.slot * (X_SLOT / 32u);
  //! end
  var wanted = false;
  //! unroll r TEAM_ROWS
  let row_$r = part_row(expert, row0 + $r);
  wanted = wanted || has_row(expert, row0 + $r);
  //! unroll c COL_TILE
  var acc_$r_$c = 0.0;
  //! end
  //! end
  let groups = select(0u, GROUPS, wanted && items > 0u);
  for (var first = lane; first < groups; first = first + TEAM * UNROLL) {
    //! unroll u UNROLL
    let group_$u = min(first + $u * TEAM, GROUPS - 1u);
    //! unroll r TEAM_ROWS
    let w_$u_$r = load_group(row_$r, group_$u);
    //! end
    //! end
    //! unroll u UNROLL
    if (GROUPS % (TEAM * UNROLL) == 0u || first + $u * TEAM < GROUPS) {
      //! unroll c COL_TILE
      let x_$c = load_x(item_$c.column, first_$c + group_$u);
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
  if (lane == ($r * COL_TILE + $c) % TEAM && $c < items && has_row(expert, row0 + $r)) {
    store(item_$c, expert, row0 + $r, sum_$r_$c);
  }
  //! end
  //! end
}
