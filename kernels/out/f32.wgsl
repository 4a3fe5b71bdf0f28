// Results as f32 rows, four elements at a time.
@group(0) @binding(1) var<storage, read_write> out: array<vec4<f32>>;

// Element 4 i.. of a row; all invocations call, those without a vector with valid = false.
fn emit(row: u32, i: u32, v: vec4<f32>, valid: bool, lid: u32) {
  if (valid) {
    out[row * OUT_STRIDE4 + i] = v;
  }
}
