// Rows of the f32 value `x`, declared by the op, four elements at a time; zero beyond COLS.
// F16_INPUTS rounds them to halves.
//! include lib/half.wgsl

fn load_x4(row: u32, i: u32) -> vec4<f32> {
  if (COLS % 32u != 0u) {
    if (i * 4u >= COLS) {
      return vec4<f32>();
    }
  }
  var v = x[row * X_STRIDE4 + i];
  if (COLS % 4u != 0u) {
    let left = COLS - i * 4u;
    v = select(vec4<f32>(), v, vec4<u32>(0u, 1u, 2u, 3u) < vec4<u32>(left));
  }
  if (F16_INPUTS) {
    v = half_round4(v);
  }
  return v;
}
