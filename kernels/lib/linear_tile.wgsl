// The tile of TILE_ROWS x COL_TILE results of an int8 Linear, with the RMS factors of its columns.
// Needs lib/x_q8.wgsl and reduce.

var<workgroup> results: array<f32, COL_TILE * TILE_ROWS>;  // [column][row]
var<workgroup> rms_factors: array<f32, COL_TILE>;           // used with X_RMS

// The result at `i`, for linear_out.
fn total(i: u32) -> f32 {
  if (X_RMS) {
    return results[i] * rms_factors[i / TILE_ROWS];
  }
  return results[i];
}

// 1 / sqrt(mean square + X_EPS) of each column, a team each. All invocations call.
fn load_rms_factors(col0: u32, columns: u32, lid: u32) {
  if (!X_RMS) {
    return;
  }
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
