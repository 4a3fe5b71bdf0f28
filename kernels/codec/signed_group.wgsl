// Groups of 32 values d * q, q a signed byte.
struct Group {
  lo: vec4<u32>,  // a q in each byte
  hi: vec4<u32>,
  d: f32,
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
