// Writing q8 rows of OUT_WIDTH elements.
//! include lib/q8_block.wgsl
@group(0) @binding(9) var<storage, read_write> q8_out: array<u32>;

// Elements 4 i.. of a row; all invocations call, whole octets with valid = false where there is no
// block.
fn emit_q8(row: u32, i: u32, v: vec4<f32>, valid: bool, lid: u32) {
  let q = q8_block(v, lid);
  if (valid) {
    let word = row * Q8_STRIDE;
    q8_out[word + q8_word(i, OUT_WIDTH)] = q.quants;
    if (i % 8u == 0u) {
      q8_out[word + OUT_WIDTH / 4u + i / 4u] = bitcast<u32>(q.d);
      q8_out[word + OUT_WIDTH / 4u + i / 4u + 1u] = bitcast<u32>(q.sum);
    }
  }
}
