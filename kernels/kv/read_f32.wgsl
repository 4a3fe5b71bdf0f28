// Reading the KV pages, f32: `i` counts elements, a multiple of 8, of 4 for value4.
@group(0) @binding(5) var<storage, read> keys: array<vec4<f32>>;
@group(0) @binding(6) var<storage, read> values: array<vec4<f32>>;

struct Eight {
  a: vec4<f32>,
  b: vec4<f32>,
}

// Eight elements as they are stored.
alias EightBits = Eight;

fn eight(bits: EightBits) -> Eight {
  return bits;
}

fn key_bits(i: u32) -> EightBits {
  return Eight(keys[i / 4u], keys[i / 4u + 1u]);
}

fn value_bits(i: u32) -> EightBits {
  return Eight(values[i / 4u], values[i / 4u + 1u]);
}

// Zeros where they do not count.
fn select_bits(bits: EightBits, counts: bool) -> EightBits {
  return Eight(select(vec4<f32>(), bits.a, counts), select(vec4<f32>(), bits.b, counts));
}

fn key8(i: u32) -> Eight {
  return key_bits(i);
}

fn value4(i: u32) -> vec4<f32> {
  return values[i / 4u];
}
