// A group's weights as halves, in the arithmetic of halves, for codecs of d * (byte - BYTE_ZERO) with
// BYTE_FLIP making bytes unsigned; d is a half and differences are exact, so that results are rounded
// once. Needs f16 and a codec.
fn scaled_pair(bytes: u32, d: vec2<f16>) -> vec2<f16> {
  // 0x6400 + b is the half 1024 + b.
  return (vec2<f16>(unpack2x16float(bytes | 0x64006400u)) - vec2<f16>(1024.0h + BYTE_ZERO)) * d;
}

fn scaled_halves(bytes: u32, d: vec2<f16>) -> vec4<f16> {
  let q = bytes ^ BYTE_FLIP;
  let even = scaled_pair(q & 0x00ff00ffu, d);
  let odd = scaled_pair((q >> 8u) & 0x00ff00ffu, d);
  return vec4<f16>(even.x, odd.x, even.y, odd.y);
}

fn group_halves(g: Group) -> array<vec4<f16>, 8> {
  let d = vec2<f16>(f16(g.d));
  return array<vec4<f16>, 8>(scaled_halves(g.lo.x, d), scaled_halves(g.lo.y, d),
                             scaled_halves(g.lo.z, d), scaled_halves(g.lo.w, d),
                             scaled_halves(g.hi.x, d), scaled_halves(g.hi.y, d),
                             scaled_halves(g.hi.z, d), scaled_halves(g.hi.w, d));
}
