// Plane 1 of a codec with one f16 a group. In rows of whole pairs neighbouring rows share the work.
fn group_scale(row: u32, group: u32) -> f32 {
  if (GROUPS % 2u == 0u) {
    return half_at(weight_side[row * (GROUPS / 2u) + group / 2u], group);
  }
  let i = row * GROUPS + group;
  return half_at(weight_side[i / 2u], i);
}
