// Writing values into pages of their own, f16: a word holds elements 2 i and 2 i + 1.
//! include lib/half.wgsl
@group(0) @binding(6) var<storage, read_write> values: array<u32>;

fn put_value(i: u32, a: f32, b: f32) {
  values[i / 2u] = pack2x16float(vec2<f32>(half_round(a), half_round(b)));
}
