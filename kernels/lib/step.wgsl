// What a step tells every kernel. LOGIT_ROWS: the op's rows are those of a pass over the columns
// that want logits, else all columns.
struct Step {
  columns: u32,
  logit_rows: u32,   // rows of this pass
  first_logit: u32,  // the pass's first row among all logit rows of the step
  ranges: u32,       // key ranges of split attention in this step
  sampling: u32,     // the highest level (sample/row.wgsl) of this pass's rows
  zero: u32,         // 0: in the bound of a loop it keeps compilers from unrolling
}
@group(0) @binding(0) var<uniform> step_info: Step;

fn row_count() -> u32 {
  if (LOGIT_ROWS) {
    return step_info.logit_rows;
  }
  return step_info.columns;
}
