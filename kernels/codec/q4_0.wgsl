// Q4_0: blocks of 32 values d * (q - 8). Plane 0: 16 bytes a block, byte i holds value i in its low
// and value i + 16 in its high nibble; plane 1: d, f16.
// Includes: lib/scale_*.
//! include codec/bytes.wgsl
const BYTE_FLIP = 0u;
const BYTE_ZERO = 8.0;

@group(0) @binding(2) var<storage, read> weights: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> weight_scales: array<u32>;

struct Group {
  lo: vec4<u32>,  // a value in each byte
  hi: vec4<u32>,
  d: f32,
}

fn load_group(row: u32, group: u32) -> Group {
  let q = weights[row * GROUPS + group];
  return Group(q & vec4<u32>(0x0f0f0f0fu), (q >> vec4<u32>(4u)) & vec4<u32>(0x0f0f0f0fu),
               group_scale(row, group));
}

fn centred(q: u32) -> vec4<f32> {
  return unsigned_bytes(q) - vec4<f32>(8.0);
}

fn group_floats(g: Group) -> array<vec4<f32>, 8> {
  return array<vec4<f32>, 8>(g.d * centred(g.lo.x), g.d * centred(g.lo.y), g.d * centred(g.lo.z),
                             g.d * centred(g.lo.w), g.d * centred(g.hi.x), g.d * centred(g.hi.y),
                             g.d * centred(g.hi.z), g.d * centred(g.hi.w));
}

fn group_dot(g: Group, x: XGroup, acc: f32) -> f32 {
  return fma(block_dot(g.lo, g.hi, x, -8 * x.sum), g.d * x.d, acc);
}
