// Q2_K: blocks of 256 values in 16 groups of 16, value = d * scale * q - dmin * min. Plane 0: 5 vectors
// a block: 16 bytes with a scale in the low and a min in the high nibble, 64 bytes of bit pairs, of
// which each 32 hold 128 values, the group of 32 at t = 0..3 in the bits from 2 t on; plane 1: d and
// dmin, f16.
//! include codec/planes.wgsl

struct Group {
  lo: vec4<u32>,  // a q in each byte
  hi: vec4<u32>,
  d: vec2<f32>,  // of the first and of the second half
  m: vec2<f32>,  // subtracted
}

fn load_group(row: u32, group: u32) -> Group {
  let block = row * (GROUPS / 8u) + group / 8u;
  let j = group % 8u;
  let pair = vec4<u32>(2u * (j & 3u));
  let q = block * 5u + 1u + 2u * (j / 4u);
  let scales = weights[block * 5u][j / 2u] >> (16u * (j & 1u));
  let dm = unpack2x16float(weight_side[block]);
  return Group((weights[q] >> pair) & vec4<u32>(0x03030303u),
               (weights[q + 1u] >> pair) & vec4<u32>(0x03030303u),
               dm.x * vec2<f32>(f32(scales & 15u), f32((scales >> 8u) & 15u)),
               dm.y * vec2<f32>(f32((scales >> 4u) & 15u), f32((scales >> 12u) & 15u)));
}

fn shifted(q: u32, d: f32, m: f32) -> vec4<f32> {
  return fma(vec4<f32>(d), unsigned_bytes(q), vec4<f32>(-m));
}

fn group_floats(g: Group) -> array<vec4<f32>, 8> {
  return array<vec4<f32>, 8>(shifted(g.lo.x, g.d.x, g.m.x), shifted(g.lo.y, g.d.x, g.m.x),
                             shifted(g.lo.z, g.d.x, g.m.x), shifted(g.lo.w, g.d.x, g.m.x),
                             shifted(g.hi.x, g.d.y, g.m.y), shifted(g.hi.y, g.d.y, g.m.y),
                             shifted(g.hi.z, g.d.y, g.m.y), shifted(g.hi.w, g.d.y, g.m.y));
}

fn group_dot(g: Group, x: XGroup, acc: f32) -> f32 {
  let sum_hi = dot_half(vec4<u32>(0x01010101u), x.hi, 0);
  let sums = vec2<f32>(f32(x.sum - sum_hi), f32(sum_hi));
  let lo = block_float(dot_half(g.lo, x.lo, BLOCK_ZERO));
  let hi = block_float(dot_half(g.hi, x.hi, BLOCK_ZERO));
  let block = fma(-g.m.y, sums.y, fma(-g.m.x, sums.x, fma(g.d.y, hi, g.d.x * lo)));
  return fma(block, x.d, acc);
}
