// Results as f32 rows and as q8 rows.
//! include lib/emit_q8.wgsl
@group(0) @binding(1) var<storage, read_write> out: array<vec4<f32>>;

fn emit(row: u32, i: u32, v: vec4<f32>, valid: bool, lid: u32) {
  if (valid) {
    out[row * OUT_STRIDE4 + i] = v;
  }
  emit_q8(row, i, v, valid, lid);
}
