// Linear, decode class, activations in int8 blocks of 32: exact integer sums of each block, scaled
// and added in f32. Teams, tiles and the order of sums as in linear_decode_f32.wgsl.
// Includes: codec, lib/dot_*, lib/reduce_*.
// Dispatch: x and z over teams, y over tiles of columns.
//! include lib/step.wgsl
//! include lib/linear_out.wgsl
@group(0) @binding(6) var<storage, read> x_blocks: array<vec4<u32>>;  // rows of X_STRIDE words: q,
@group(0) @binding(7) var<storage, read> x_words: array<u32>;         // d, sums; the same buffer

const RESULTS = (TEAM_ROWS * COL_TILE + TEAM - 1u) / TEAM;

@compute @workgroup_size(WORKGROUP_X)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lid: u32) {
  let lane = lid % TEAM;
  let row0 = ((wid.x + wid.z * count.x) * (WORKGROUP_X / TEAM) + lid / TEAM) * TEAM_ROWS;
  let col0 = wid.y * COL_TILE;
  let columns = row_count();
  var acc: array<f32, TEAM_ROWS * COL_TILE>;
  for (var group = lane; group < GROUPS; group = group + TEAM) {
    var lo: array<vec4<u32>, COL_TILE>;
    var hi: array<vec4<u32>, COL_TILE>;
    var d: array<f32, COL_TILE>;
    var sums: array<i32, COL_TILE>;
    for (var c = 0u; c < COL_TILE; c = c + 1u) {
      let word = min(col0 + c, columns - 1u) * X_STRIDE;
      lo[c] = x_blocks[word / 4u + group * 2u];
      hi[c] = x_blocks[word / 4u + group * 2u + 1u];
      d[c] = bitcast<f32>(x_words[word + COLS / 4u + group]);
      sums[c] = bitcast<i32>(x_words[word + COLS / 4u + GROUPS + group]);
    }
    for (var r = 0u; r < TEAM_ROWS; r = r + 1u) {
      let w = load_group(min(row0 + r, ROWS - 1u), group);
      for (var c = 0u; c < COL_TILE; c = c + 1u) {
        let i = r * COL_TILE + c;
        acc[i] = group_dot(w, lo[c], hi[c], d[c], sums[c], acc[i]);
      }
    }
  }
  // Lane l of the team stores results l, l + TEAM, ....
  var results: array<f32, RESULTS>;
  for (var i = 0u; i < TEAM_ROWS * COL_TILE; i = i + 1u) {
    let sum = team_sum(acc[i], lid);
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
