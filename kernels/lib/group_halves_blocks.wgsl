// A group's weights as halves. Scales of blocks are halves themselves, so that nothing is saturated:
// what a half cannot hold becomes infinite, which the logits show. Needs f16 and a codec.
fn group_halves(g: Group) -> array<vec4<f16>, 8> {
  let v = group_floats(g);
  return array<vec4<f16>, 8>(vec4<f16>(v[0]), vec4<f16>(v[1]), vec4<f16>(v[2]), vec4<f16>(v[3]),
                             vec4<f16>(v[4]), vec4<f16>(v[5]), vec4<f16>(v[6]), vec4<f16>(v[7]));
}
