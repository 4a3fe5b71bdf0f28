// The results also for the norm that follows.
//! include lib/normed_q8.wgsl
fn finish(row: u32, i: u32, v: vec4<f32>, valid: bool, lid: u32) {
  emit_normed(row, i, v, valid, lid);
}
