// Plane 1 of a codec with one f16 a group, as lib/scale_pairs.wgsl. The same numbers; which of the two
// makes the faster kernel depends on the rest of it.
fn group_scale(row: u32, group: u32) -> f32 {
  let i = row * GROUPS + group;
  return unpack2x16float(weight_side[i >> 1u] >> (16u * (i & 1u))).x;
}
