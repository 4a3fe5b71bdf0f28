// A group's weights as halves, saturating. Needs f16 and a codec.
//! include lib/to_halves.wgsl
fn group_halves(g: Group) -> array<vec4<f16>, 8> {
  let v = group_floats(g);
  return array<vec4<f16>, 8>(to_halves(v[0]), to_halves(v[1]), to_halves(v[2]), to_halves(v[3]),
                             to_halves(v[4]), to_halves(v[5]), to_halves(v[6]), to_halves(v[7]));
}
