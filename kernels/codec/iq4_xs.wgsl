// IQ4_XS: blocks of 256 values in 8 groups of 32, value = d * (scale - 32) * codebook[q]. Plane 0: 8
// vectors a block, each a group as in IQ4_NL; plane 1 after the table: two words a block: d (f16) and
// eight upper bit pairs of scales, then eight nibbles.
//! include codec/planes.wgsl
//! include codec/nibble_group.wgsl

fn load_group(row: u32, group: u32) -> Group {
  let i = row * GROUPS + group;
  let j = group % 8u;
  let side = TABLE_WORDS + i / 8u * 2u;
  let head = weight_side[side];
  let scale = ((weight_side[side + 1u] >> (4u * j)) & 15u) | (((head >> (16u + 2u * j)) & 3u) << 4u);
  return nibble_group(weights[i], unpack2x16float(head).x * (f32(scale) - 32.0));
}
