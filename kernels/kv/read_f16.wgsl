// Reading the KV pages, f16 in pairs: `i` counts elements, a multiple of 8, of 4 for value4.
@group(0) @binding(5) var<storage, read> keys: array<vec4<u32>>;
@group(0) @binding(6) var<storage, read> values: array<vec4<u32>>;

struct Eight {
  a: vec4<f32>,
  b: vec4<f32>,
}

fn eight(bits: vec4<u32>) -> Eight {
  return Eight(vec4<f32>(unpack2x16float(bits.x), unpack2x16float(bits.y)),
               vec4<f32>(unpack2x16float(bits.z), unpack2x16float(bits.w)));
}

// Eight elements as they are stored.
alias EightBits = vec4<u32>;

fn key_bits(i: u32) -> EightBits {
  return keys[i / 8u];
}

fn value_bits(i: u32) -> EightBits {
  return values[i / 8u];
}

// Zeros where they do not count.
fn select_bits(bits: EightBits, counts: bool) -> EightBits {
  return select(vec4<u32>(), bits, counts);
}

fn key8(i: u32) -> Eight {
  return eight(keys[i / 8u]);
}

fn value4(i: u32) -> vec4<f32> {
  let bits = values[i / 8u];
  let two = select(bits.xy, bits.zw, (i & 4u) != 0u);
  return vec4<f32>(unpack2x16float(two.x), unpack2x16float(two.y));
}
