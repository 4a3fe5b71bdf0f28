// Linear, decode class, f32 activations: a team of TEAM invocations holds TEAM_ROWS rows of the
// matrix against COL_TILE columns; lane l takes the groups of 32 elements l, l + TEAM, .... The order
// of a row's sum depends on the row's length only, so every COL_TILE gives the same bits.
// Includes: codec, lib/reduce_*.
// Dispatch: x and z over teams, y over tiles of columns.
//! include lib/step.wgsl
//! include lib/x_f32.wgsl
//! include lib/weight_floats.wgsl
//! include lib/linear_out.wgsl
@group(0) @binding(6) var<storage, read> x: array<vec4<f32>>;

const RESULTS = (TEAM_ROWS * COL_TILE + TEAM - 1u) / TEAM;

@compute @workgroup_size(WORKGROUP_X)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lid: u32) {
  let lane = lid % TEAM;
  let row0 = ((wid.x + wid.z * count.x) * (WORKGROUP_X / TEAM) + lid / TEAM) * TEAM_ROWS;
  let col0 = wid.y * COL_TILE;
  let columns = row_count();
  var acc: array<vec4<f32>, TEAM_ROWS * COL_TILE>;
  for (var group = lane; group < GROUPS; group = group + TEAM) {
    for (var r = 0u; r < TEAM_ROWS; r = r + 1u) {
      let w = weight_floats(min(row0 + r, ROWS - 1u), group);
      for (var c = 0u; c < COL_TILE; c = c + 1u) {
        let column = min(col0 + c, columns - 1u);
        let i = group * 8u;
        var sum = acc[r * COL_TILE + c];
        sum = fma(w[0], load_x4(column, i), sum);
        sum = fma(w[1], load_x4(column, i + 1u), sum);
        sum = fma(w[2], load_x4(column, i + 2u), sum);
        sum = fma(w[3], load_x4(column, i + 3u), sum);
        sum = fma(w[4], load_x4(column, i + 4u), sum);
        sum = fma(w[5], load_x4(column, i + 5u), sum);
        sum = fma(w[6], load_x4(column, i + 6u), sum);
        sum = fma(w[7], load_x4(column, i + 7u), sum);
        acc[r * COL_TILE + c] = sum;
      }
    }
  }
  // Lane l of the team stores results l, l + TEAM, ....
  var results: array<f32, RESULTS>;
  for (var i = 0u; i < TEAM_ROWS * COL_TILE; i = i + 1u) {
    let four = acc[i];
    let sum = team_sum((four.x + four.y) + (four.z + four.w), lid);
    if (lane == i % TEAM) {
      results[i / TEAM] = sum;
    }
  }
  for (var j = 0u; j < RESULTS; j = j + 1u) {
    let i = j * TEAM + lane;
    let row = row0 + i / COL_TILE;
    let column = col0 + i % COL_TILE;
    if (i < TEAM_ROWS * COL_TILE && row < ROWS && column < columns) {
      store(column, row, results[j]);
    }
  }
}
