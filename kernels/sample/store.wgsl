// The token of a row goes to the results and becomes the last token of the column's slot.
//! include lib/step.wgsl
@group(0) @binding(1) var<storage, read_write> results: array<vec2<u32>>;  // token, finite; by logit row
@group(0) @binding(2) var<storage, read_write> last_tokens: array<u32>;
@group(0) @binding(3) var<storage, read> logit_columns: array<u32>;
@group(0) @binding(4) var<storage, read> columns: array<vec4<u32>>;  // token, position, slot

// `row`: of this pass.
fn store_token(row: u32, token: u32, finite: u32) {
  let logit_row = step_info.first_logit + row;
  results[logit_row] = vec2<u32>(token, finite);
  // Rows of one slot are neighbours; the last of them counts.
  let slot = columns[logit_columns[logit_row]].z;
  let next = min(row + 1u, step_info.logit_rows - 1u);
  if (next == row || columns[logit_columns[step_info.first_logit + next]].z != slot) {
    last_tokens[slot] = token;
  }
}
