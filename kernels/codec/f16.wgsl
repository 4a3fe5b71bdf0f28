// F16 rows, padded with zeros to whole vectors of 16 bytes (8 values).
@group(0) @binding(2) var<storage, read> weights: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> weight_side: array<u32>;  // not used

struct Group {
  bits: array<vec4<u32>, 4>,
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
  let i = group * 4u;
  return Group(array<vec4<u32>, 4>(weight_bits(row, i), weight_bits(row, i + 1u),
                                   weight_bits(row, i + 2u), weight_bits(row, i + 3u)));
}

fn halves(x: u32, y: u32) -> vec4<f32> {
  return vec4<f32>(unpack2x16float(x), unpack2x16float(y));
}

fn group_floats(g: Group) -> array<vec4<f32>, 8> {
  return array<vec4<f32>, 8>(
      halves(g.bits[0].x, g.bits[0].y), halves(g.bits[0].z, g.bits[0].w),
      halves(g.bits[1].x, g.bits[1].y), halves(g.bits[1].z, g.bits[1].w),
      halves(g.bits[2].x, g.bits[2].y), halves(g.bits[2].z, g.bits[2].w),
      halves(g.bits[3].x, g.bits[3].y), halves(g.bits[3].z, g.bits[3].w));
}
