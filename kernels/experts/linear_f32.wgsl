// ExpertLinear, f32 activations: a team of TEAM invocations holds TEAM_ROWS rows of an expert's matrix
// against COL_TILE items; lane l takes the groups of 32 elements l, l + TEAM, ..., then the lanes are
// added. The order of a row's sum depends on its length only.
// Includes: codec, lib/reduce_*, experts/direct or grouped.
// Dispatch: x over rows of a matrix, y and z over tiles of items.
//! include lib/step.wgsl
//! include lib/weight_floats.wgsl
//! include experts/rows.wgsl
@group(0) @binding(6) var<storage, read> x: array<vec4<f32>>;

fn element(first: u32, i: u32) -> f32 {
  if (i >= COLS) {
    return 0.0;
  }
  return x[(first + i) / 4u][(first + i) % 4u];
}

// Elements 4 i.. of the COLS elements from `first` on; zero beyond them.
fn load_x4(first: u32, i: u32) -> vec4<f32> {
  var v = vec4<f32>();
  if (COLS % 4u != 0u) {
    let j = i * 4u;
    v = vec4<f32>(element(first, j), element(first, j + 1u), element(first, j + 2u),
                  element(first, j + 3u));
  } else if (COLS % 32u == 0u || i * 4u < COLS) {
    v = x[first / 4u + i];
  }
  if (F16_INPUTS) {
    v = half_round4(v);
  }
  return v;
}

@compute @workgroup_size(WORKGROUP_X)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
  let lane = lid % TEAM;
  let row0 = (wid.x * (WORKGROUP_X / TEAM) + lid / TEAM) * TEAM_ROWS;
  let items = tile_items(wid);
  let expert = tile_expert(wid);
  //! unroll c COL_TILE
  let item_$c = tile_item(wid, $c);
  let first_$c = item_$c.column * X_STRIDE + item_$c.slot * X_SLOT;
  //! end
  var wanted = false;
  //! unroll r TEAM_ROWS
  let row_$r = part_row(expert, row0 + $r);
  wanted = wanted || has_row(expert, row0 + $r);
  //! unroll c COL_TILE
  var acc_$r_$c = vec4<f32>();
  //! end
  //! end
  let groups = select(0u, GROUPS, wanted && items > 0u);
  for (var group = lane; group < groups; group = group + TEAM) {
    //! unroll r TEAM_ROWS
    let w_$r = weight_floats(row_$r, group);
    //! end
    //! unroll c COL_TILE
    //! unroll e 8
    let x_$c_$e = load_x4(first_$c, group * 8u + $e);
    //! unroll r TEAM_ROWS
    acc_$r_$c = fma(w_$r[$e], x_$c_$e, acc_$r_$c);
    //! end
    //! end
    //! end
  }
  //! unroll r TEAM_ROWS
  //! unroll c COL_TILE
  let sum_$r_$c = team_sum((acc_$r_$c.x + acc_$r_$c.y) + (acc_$r_$c.z + acc_$r_$c.w), lid);
  if (lane == ($r * COL_TILE + $c) % TEAM && $c < items && has_row(expert, row0 + $r)) {
    store(item_$c, expert, row0 + $r, sum_$r_$c);
  }
  //! end
  //! end
}
