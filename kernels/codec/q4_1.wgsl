// Q4_1: blocks of 32 values d * q + m. Plane 0: 16 bytes a block, byte i holds value i in its low
// and value i + 16 in its high nibble; plane 1: d and m, f16.
//! include codec/bytes.wgsl
@group(0) @binding(2) var<storage, read> weights: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> weight_scales: array<u32>;

struct Group {
  lo: vec4<u32>,  // a value in each byte
  hi: vec4<u32>,
  dm: vec2<f32>,
}

fn load_group(row: u32, group: u32) -> Group {
  let i = row * GROUPS + group;
  let q = weights[i];
  return Group(q & vec4<u32>(0x0f0f0f0fu), (q >> vec4<u32>(4u)) & vec4<u32>(0x0f0f0f0fu),
               unpack2x16float(weight_scales[i]));
}

fn shifted(q: u32, dm: vec2<f32>) -> vec4<f32> {
  return fma(vec4<f32>(dm.x), unsigned_bytes(q), vec4<f32>(dm.y));
}

fn group_floats(g: Group) -> array<vec4<f32>, 8> {
  return array<vec4<f32>, 8>(shifted(g.lo.x, g.dm), shifted(g.lo.y, g.dm), shifted(g.lo.z, g.dm),
                             shifted(g.lo.w, g.dm), shifted(g.hi.x, g.dm), shifted(g.hi.y, g.dm),
                             shifted(g.hi.z, g.dm), shifted(g.hi.w, g.dm));
}

fn group_dot(g: Group, x: XGroup, acc: f32) -> f32 {
  let dm = g.dm * x.d;
  return fma(dm.y, f32(x.sum), fma(dm.x, block_dot(g.lo, g.hi, x, 0), acc));
}
