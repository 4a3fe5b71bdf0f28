// 8-bit floats (E4M3) in blocks of 32 BLOCK_GROUPS values d * q. Plane 0: 32 bytes a group; plane 1: d
// of a block, f32.
//! include codec/planes.wgsl

struct Group {
  lo: vec4<u32>,
  hi: vec4<u32>,
  d: f32,  // 256 times
}

fn load_group(row: u32, group: u32) -> Group {
  let i = row * GROUPS + group;
  return Group(weights[i * 2u], weights[i * 2u + 1u], 256.0 * bitcast<f32>(weight_side[i / BLOCK_GROUPS]));
}

// The values of four bytes over 256: as halves their exponent is 8 less.
fn small_floats(q: u32) -> vec4<f32> {
  let even = unpack2x16float(((q & 0x00800080u) << 8u) | ((q & 0x007f007fu) << 7u));
  let odd = unpack2x16float((q & 0x80008000u) | ((q & 0x7f007f00u) >> 1u));
  return vec4<f32>(even.x, odd.x, even.y, odd.y);
}

fn group_floats(g: Group) -> array<vec4<f32>, 8> {
  return array<vec4<f32>, 8>(g.d * small_floats(g.lo.x), g.d * small_floats(g.lo.y),
                             g.d * small_floats(g.lo.z), g.d * small_floats(g.lo.w),
                             g.d * small_floats(g.hi.x), g.d * small_floats(g.hi.y),
                             g.d * small_floats(g.hi.z), g.d * small_floats(g.hi.w));
}

fn half_product(q: vec4<u32>, x: vec4<u32>, sum: vec4<f32>) -> vec4<f32> {
  return fma(small_floats(q.w), signed_bytes(x.w),
             fma(small_floats(q.z), signed_bytes(x.z),
                 fma(small_floats(q.y), signed_bytes(x.y),
                     fma(small_floats(q.x), signed_bytes(x.x), sum))));
}

fn group_dot(g: Group, x: XGroup, acc: f32) -> f32 {
  let sums = half_product(g.hi, x.hi, half_product(g.lo, x.lo, vec4<f32>()));
  return fma((sums.x + sums.y) + (sums.z + sums.w), g.d * x.d, acc);
}
