// Reading the KV pages, f16 in pairs: `i` counts elements, a multiple of 8 for keys, of 4 for values.
@group(0) @binding(5) var<storage, read> keys: array<vec4<u32>>;
@group(0) @binding(6) var<storage, read> values: array<vec2<u32>>;

struct Eight {
  a: vec4<f32>,
  b: vec4<f32>,
}

fn key8(i: u32) -> Eight {
  let bits = keys[i / 8u];
  return Eight(vec4<f32>(unpack2x16float(bits.x), unpack2x16float(bits.y)),
               vec4<f32>(unpack2x16float(bits.z), unpack2x16float(bits.w)));
}

fn value4(i: u32) -> vec4<f32> {
  let bits = values[i / 4u];
  return vec4<f32>(unpack2x16float(bits.x), unpack2x16float(bits.y));
}
