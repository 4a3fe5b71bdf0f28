// Groups of 32 values d * (q - OFFSET), q an unsigned byte.
struct Group {
  lo: vec4<u32>,  // a q in each byte
  hi: vec4<u32>,
  d: f32,
}

fn centred(q: u32) -> vec4<f32> {
  return unsigned_bytes(q) - vec4<f32>(f32(OFFSET));
}

fn group_floats(g: Group) -> array<vec4<f32>, 8> {
  return array<vec4<f32>, 8>(g.d * centred(g.lo.x), g.d * centred(g.lo.y), g.d * centred(g.lo.z),
                             g.d * centred(g.lo.w), g.d * centred(g.hi.x), g.d * centred(g.hi.y),
                             g.d * centred(g.hi.z), g.d * centred(g.hi.w));
}

fn group_dot(g: Group, x: XGroup, acc: f32) -> f32 {
  return fma(block_dot(g.lo, g.hi, x, -OFFSET * x.sum), g.d * x.d, acc);
}
