// Q8_0: blocks of 32 values d * q. Plane 0: 32 signed bytes a block; plane 1: d, f16.
// Includes: lib/scale_*.
//! include codec/bytes.wgsl
const BYTE_FLIP = 0x80808080u;
const BYTE_ZERO = 128.0;

@group(0) @binding(2) var<storage, read> weights: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> weight_scales: array<u32>;

struct Group {
  lo: vec4<u32>,
  hi: vec4<u32>,
  d: f32,
}

fn load_group(row: u32, group: u32) -> Group {
  let i = row * GROUPS + group;
  return Group(weights[i * 2u], weights[i * 2u + 1u], group_scale(row, group));
}

fn group_floats(g: Group) -> array<vec4<f32>, 8> {
  return array<vec4<f32>, 8>(
      g.d * signed_bytes(g.lo.x), g.d * signed_bytes(g.lo.y), g.d * signed_bytes(g.lo.z),
      g.d * signed_bytes(g.lo.w), g.d * signed_bytes(g.hi.x), g.d * signed_bytes(g.hi.y),
      g.d * signed_bytes(g.hi.z), g.d * signed_bytes(g.hi.w));
}

fn group_dot(g: Group, x: XGroup, acc: f32) -> f32 {
  return fma(block_dot(g.lo, g.hi, x, 0), g.d * x.d, acc);
}
