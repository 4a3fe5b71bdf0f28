// out = table[token of the column] * SCALE, with POSITIONS + positions[position of the column], for
// tokens in the rows [FIRST_ROW, FIRST_ROW + ROWS) of the table that this dispatch has; one invocation
// a group of 32.
// Includes: codec. Dispatch: x over groups, y over columns.
//! include lib/step.wgsl
@group(0) @binding(1) var<storage, read_write> out: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> columns: array<vec4<u32>>;  // token, position, slot
@group(0) @binding(5) var<storage, read> last_tokens: array<u32>;    // by slot
@group(0) @binding(6) var<storage, read> positions: array<vec4<f32>>;  // used with POSITIONS

fn put(column: u32, position: u32, i: u32, v: vec4<f32>) {
  if (i * 4u < COLS) {
    if (POSITIONS) {
      out[column * OUT_STRIDE4 + i] = fma(v, vec4<f32>(SCALE), positions[position * OUT_STRIDE4 + i]);
    } else {
      out[column * OUT_STRIDE4 + i] = v * SCALE;
    }
  }
}

@compute @workgroup_size(WORKGROUP_X)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
  let group = wid.x * WORKGROUP_X + lid;
  let column = columns[wid.y];
  var token = column.x;
  if (token == 0xffffffffu) {
    token = last_tokens[column.z];
  }
  let row = token - FIRST_ROW;  // wraps to a large number below the first row
  if (group >= GROUPS || row >= ROWS) {
    return;
  }
  let w = group_floats(load_group(row, group));
  let i = group * 8u;
  put(wid.y, column.y, i, w[0]);
  put(wid.y, column.y, i + 1u, w[1]);
  put(wid.y, column.y, i + 2u, w[2]);
  put(wid.y, column.y, i + 3u, w[3]);
  put(wid.y, column.y, i + 4u, w[4]);
  put(wid.y, column.y, i + 5u, w[5]);
  put(wid.y, column.y, i + 6u, w[6]);
  put(wid.y, column.y, i + 7u, w[7]);
}
