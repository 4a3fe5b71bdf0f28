// Writing keys into their pages, f16: a word holds elements 2 i and 2 i + 1.
//! include lib/half.wgsl
@group(0) @binding(5) var<storage, read_write> keys: array<u32>;

fn put_key(i: u32, a: f32, b: f32) {
  keys[i / 2u] = pack2x16float(vec2<f32>(half_round(a), half_round(b)));
}
