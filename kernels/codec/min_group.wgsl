// Groups of 32 values d * q - m, q an unsigned byte.
struct Group {
  lo: vec4<u32>,  // a q in each byte
  hi: vec4<u32>,
  d: f32,
  m: f32,
}

fn shifted(q: u32, d: f32, m: f32) -> vec4<f32> {
  return fma(vec4<f32>(d), unsigned_bytes(q), vec4<f32>(-m));
}

fn group_floats(g: Group) -> array<vec4<f32>, 8> {
  return array<vec4<f32>, 8>(shifted(g.lo.x, g.d, g.m), shifted(g.lo.y, g.d, g.m),
                             shifted(g.lo.z, g.d, g.m), shifted(g.lo.w, g.d, g.m),
                             shifted(g.hi.x, g.d, g.m), shifted(g.hi.y, g.d, g.m),
                             shifted(g.hi.z, g.d, g.m), shifted(g.hi.w, g.d, g.m));
}

fn group_dot(g: Group, x: XGroup, acc: f32) -> f32 {
  return fma(-g.m * x.d, f32(x.sum),
             fma(g.d * x.d, block_dot(g.lo, g.hi, x, 0), acc));
}
