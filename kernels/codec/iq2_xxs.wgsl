// IQ2_XXS: blocks of 256 values in 8 groups of 32, value = d * (s + 1/2) / 4 * sign * grid value. Plane
// 0: 4 vectors a block, two words a group: four indices of 8 bits; four times 7 signs, then s, 4 bits.
// Plane 1: the grid of 256 points of 8, then d, f16.
//! include codec/planes.wgsl
//! include codec/signed_group.wgsl
//! include codec/grid.wgsl
const TABLE_WORDS = 512u;

fn load_group(row: u32, group: u32) -> Group {
  let i = row * GROUPS + group;
  let block = i / 8u;
  let both = weights[i / 2u];
  let q = select(both.xy, both.zw, (i & 1u) == 1u);
  let d = half_at(weight_side[TABLE_WORDS + block / 2u], block);
  let a = point8(q.x & 255u, even_signs(q.y));
  let b = point8((q.x >> 8u) & 255u, even_signs(q.y >> 7u));
  let c = point8((q.x >> 16u) & 255u, even_signs(q.y >> 14u));
  let e = point8(q.x >> 24u, even_signs(q.y >> 21u));
  return Group(vec4<u32>(a, b), vec4<u32>(c, e), d * (f32(q.y >> 28u) + 0.5) * 0.25);
}
