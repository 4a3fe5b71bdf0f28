// Writing values into pages of their own, f32.
@group(0) @binding(6) var<storage, read_write> values: array<f32>;

fn put_value(i: u32, a: f32, b: f32) {
  values[i] = a;
  values[i + 1u] = b;
}
