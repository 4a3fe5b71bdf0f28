// The tile of results of an int8 Linear, with the RMS factors of its columns. Needs lib/x_q8.wgsl and
// reduce.
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

// The sums of squares of a column, a team each, TEAM groups apart; to be loaded before the loop that
// hides the wait.
struct Squares {
  //! unroll i RMS_PARTS
  part_$i: f32,
  //! end
  none: f32,
}

fn load_squares(col0: u32, columns: u32, lid: u32) -> Squares {
  var squares = Squares();
  if (X_RMS && lid / TEAM < COL_TILE) {
    let column = min(col0 + lid / TEAM, columns - 1u);
    //! unroll i RMS_PARTS
    let group_$i = lid % TEAM + $i * TEAM;
    squares.part_$i = select(0.0, load_square(column, min(group_$i, GROUPS - 1u)), group_$i < GROUPS);
    //! end
  }
  return squares;
}

// 1 / sqrt(mean square + X_EPS) of each column. All invocations call.
fn make_rms_factor(squares: Squares, lid: u32) {
  if (!X_RMS) {
    return;
  }
  var sum = 0.0;
  //! unroll i RMS_PARTS
  sum = sum + squares.part_$i;
  //! end
  sum = team_sum(sum, lid);
  if (lid % TEAM == 0u && lid / TEAM < COL_TILE) {
    rms_factors[lid / TEAM] = 1.0 / sqrt(fma(sum, 1.0 / f32(COLS), X_EPS));
  }
}
