// F32 rows, padded with zeros to whole vectors of 16 bytes.
@group(0) @binding(2) var<storage, read> weights: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> weight_side: array<u32>;  // not used

struct Group {
  bits: array<vec4<u32>, 8>,
}

fn weight_bits(row: u32, i: u32) -> vec4<u32> {
  if (COLS % 32u != 0u) {
    if (i >= ROW_VECTORS) {
      return vec4<u32>();
    }
  }
  return weights[row * ROW_VECTORS + i];
}

fn load_group(row: u32, group: u32) -> Group {
  let i = group * 8u;
  return Group(array<vec4<u32>, 8>(
      weight_bits(row, i), weight_bits(row, i + 1u), weight_bits(row, i + 2u), weight_bits(row, i + 3u),
      weight_bits(row, i + 4u), weight_bits(row, i + 5u), weight_bits(row, i + 6u),
      weight_bits(row, i + 7u)));
}

fn group_floats(g: Group) -> array<vec4<f32>, 8> {
  return array<vec4<f32>, 8>(
      bitcast<vec4<f32>>(g.bits[0]), bitcast<vec4<f32>>(g.bits[1]), bitcast<vec4<f32>>(g.bits[2]),
      bitcast<vec4<f32>>(g.bits[3]), bitcast<vec4<f32>>(g.bits[4]), bitcast<vec4<f32>>(g.bits[5]),
      bitcast<vec4<f32>>(g.bits[6]), bitcast<vec4<f32>>(g.bits[7]));
}
