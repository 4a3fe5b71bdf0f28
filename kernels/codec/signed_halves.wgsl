// Groups of 32 values, the first half d_lo * q and the second d_hi * q, q a signed byte.
struct Group {
  lo: vec4<u32>,  // a q in each byte
  hi: vec4<u32>,
  d_lo: f32,
  d_hi: f32,
}

fn group_floats(g: Group) -> array<vec4<f32>, 8> {
  return array<vec4<f32>, 8>(
      g.d_lo * signed_bytes(g.lo.x), g.d_lo * signed_bytes(g.lo.y), g.d_lo * signed_bytes(g.lo.z),
      g.d_lo * signed_bytes(g.lo.w), g.d_hi * signed_bytes(g.hi.x), g.d_hi * signed_bytes(g.hi.y),
      g.d_hi * signed_bytes(g.hi.z), g.d_hi * signed_bytes(g.hi.w));
}

fn group_dot(g: Group, x: XGroup, acc: f32) -> f32 {
  return fma(g.d_hi * x.d, block_float(dot_half(g.hi, x.hi, BLOCK_ZERO)),
             fma(g.d_lo * x.d, block_float(dot_half(g.lo, x.lo, BLOCK_ZERO)), acc));
}
