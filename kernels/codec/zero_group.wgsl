// Groups of 32 values d * (q - zero).
struct Group {
  lo: vec4<u32>,  // a q in each byte
  hi: vec4<u32>,
  dz: vec2<f32>,  // d and zero
}

fn centred(g: Group, q: u32) -> vec4<f32> {
  return g.dz.x * (code_floats(q) - vec4<f32>(g.dz.y));
}

fn group_floats(g: Group) -> array<vec4<f32>, 8> {
  return array<vec4<f32>, 8>(centred(g, g.lo.x), centred(g, g.lo.y), centred(g, g.lo.z),
                             centred(g, g.lo.w), centred(g, g.hi.x), centred(g, g.hi.y),
                             centred(g, g.hi.z), centred(g, g.hi.w));
}

fn group_dot(g: Group, x: XGroup, acc: f32) -> f32 {
  return fma(fma(-g.dz.y, f32(x.sum), block_dot(g.lo, g.hi, x, 0)), g.dz.x * x.d, acc);
}
