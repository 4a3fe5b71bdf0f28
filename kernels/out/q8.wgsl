// Results as q8 rows.
//! include lib/emit_q8.wgsl

fn emit(row: u32, i: u32, v: vec4<f32>, valid: bool, lid: u32) {
  emit_q8(row, i, v, valid, lid);
}
