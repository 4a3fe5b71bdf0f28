// Linear, decode class, activations in int8 blocks of 32: exact integer sums of each block, scaled
// and added in f32. A team of TEAM invocations holds TEAM_ROWS rows of the matrix against COL_TILE
// columns; lane l takes the groups of 32 elements l, l + TEAM, ... in their order, UNROLL of them
// loaded at a time, then the lanes are added. The order of a row's sum depends on the row's length only.
// Includes: codec, lib/dot_*, lib/reduce_*, linear_out/*.
// Dispatch: x and z over tiles of rows, y over tiles of columns.
//! include lib/step.wgsl
//! include lib/x_q8.wgsl

const TILE_ROWS = WORKGROUP_X / TEAM * TEAM_ROWS;

var<workgroup> results: array<f32, COL_TILE * TILE_ROWS>;  // [column][row]
var<workgroup> rms_factors: array<f32, COL_TILE>;           // used with X_RMS

// The result at `i`, for linear_out.
fn total(i: u32) -> f32 {
  if (X_RMS) {
    return results[i] * rms_factors[i / TILE_ROWS];
  }
  return results[i];
}

// 1 / sqrt(mean square + X_EPS) of each column, a team each.
fn load_rms_factors(col0: u32, columns: u32, lid: u32) {
  for (var start = 0u; start < COL_TILE; start = start + WORKGROUP_X / TEAM) {
    let c = start + lid / TEAM;
    let column = min(col0 + c, columns - 1u);
    var sum = 0.0;
    if (c < COL_TILE) {
      for (var group = lid % TEAM; group < GROUPS; group = group + TEAM) {
        sum = sum + load_square(column, group);
      }
    }
    sum = team_sum(sum, lid);
    if (c < COL_TILE && lid % TEAM == 0u) {
      rms_factors[c] = 1.0 / sqrt(fma(sum, 1.0 / f32(COLS), X_EPS));
    }
  }
}

@compute @workgroup_size(WORKGROUP_X)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lid: u32) {
  let lane = lid % TEAM;
  let own = lid / TEAM * TEAM_ROWS;
  let row0 = (wid.x + wid.z * count.x) * TILE_ROWS;
  let col0 = wid.y * COL_TILE;
  let columns = row_count();
  if (X_RMS) {
    load_rms_factors(col0, columns, lid);
  }
  var acc: array<f32, TEAM_ROWS * COL_TILE>;
  for (var first = lane; first < GROUPS; first = first + TEAM * UNROLL) {
    var w: array<Group, UNROLL * TEAM_ROWS>;
    for (var u = 0u; u < UNROLL; u = u + 1u) {
      for (var r = 0u; r < TEAM_ROWS; r = r + 1u) {
        w[u * TEAM_ROWS + r] = load_group(source_row(min(row0 + own + r, ROWS - 1u)),
                                          min(first + u * TEAM, GROUPS - 1u));
      }
    }
    for (var u = 0u; u < UNROLL; u = u + 1u) {
      let group = first + u * TEAM;
      if (GROUPS % (TEAM * UNROLL) == 0u || group < GROUPS) {
        for (var c = 0u; c < COL_TILE; c = c + 1u) {
          let v = load_x(min(col0 + c, columns - 1u), group);
          for (var r = 0u; r < TEAM_ROWS; r = r + 1u) {
            let i = r * COL_TILE + c;
            acc[i] = group_dot(w[u * TEAM_ROWS + r], v, acc[i]);
          }
        }
      }
    }
  }
  for (var r = 0u; r < TEAM_ROWS; r = r + 1u) {
    for (var c = 0u; c < COL_TILE; c = c + 1u) {
      let i = r * COL_TILE + c;
      let sum = team_sum(acc[i], lid);
      if (lane == i % TEAM) {
        results[c * TILE_ROWS + own + r] = sum;
      }
    }
  }
  workgroupBarrier();
  finish(col0, row0, columns, lid);
}
