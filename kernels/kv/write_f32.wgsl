// Writing keys into their pages, f32.
@group(0) @binding(5) var<storage, read_write> keys: array<f32>;

fn put_key(i: u32, a: f32, b: f32) {
  keys[i] = a;
  keys[i + 1u] = b;
}
