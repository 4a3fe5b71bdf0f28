// Results as f16 rows for cooperative matrices, four elements at a time.
//! include lib/to_halves.wgsl
@group(0) @binding(1) var<storage, read_write> out: array<vec4<f16>>;

// Element 4 i.. of a row; all invocations call, those without a vector with valid = false.
fn emit(row: u32, i: u32, v: vec4<f32>, valid: bool, lid: u32) {
  if (valid) {
    out[row * OUT_STRIDE4 + i] = to_halves(v);
  }
}
