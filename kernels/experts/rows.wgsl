// Rows of the matrices of an ExpertLinear, each of EXPERT_ROWS rows, of which this dispatch has the
// rows [FIRST_ROW, FIRST_ROW + ROWS) of all; and where their results go. An item is one of the
// experts chosen for a column. Includes: experts/direct or grouped.
@group(0) @binding(1) var<storage, read_write> out: array<f32>;
@group(0) @binding(4) var<storage, read> bias: array<f32>;    // used with BIAS
@group(0) @binding(5) var<storage, read> routes: array<f32>;  // [column][experts' numbers, weights]

struct Item {
  column: u32,
  slot: u32,
}

// Whether this dispatch has the row of an expert.
fn has_row(expert: u32, row: u32) -> bool {
  return row < EXPERT_ROWS && expert * EXPERT_ROWS + row - FIRST_ROW < ROWS;
}

// Its place in the weights; any other row where the dispatch does not have it.
fn part_row(expert: u32, row: u32) -> u32 {
  return min(expert * EXPERT_ROWS + row - FIRST_ROW, ROWS - 1u);
}

fn store(item: Item, expert: u32, row: u32, sum: f32) {
  var result = sum;
  if (BIAS) {
    result = result + bias[expert * EXPERT_ROWS + row];
  }
  out[item.column * OUT_STRIDE + item.slot * EXPERT_ROWS + row] = result;
}
