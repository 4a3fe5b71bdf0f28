// IQ3_XXS: blocks of 256 values in 8 groups of 32, value = d * (s + 1/2) / 2 * sign * grid value. Plane
// 0: 6 vectors a block: eight indices of 8 bits a group, then a word a group: four times 7 signs, s of 4
// bits. Plane 1: the grid of 256 points of 4, then d, f16.
//! include codec/planes.wgsl
//! include codec/signed_group.wgsl
//! include codec/grid.wgsl
const TABLE_WORDS = 256u;

fn load_group(row: u32, group: u32) -> Group {
  let block = row * (GROUPS / 8u) + group / 8u;
  let j = group % 8u;
  let both = weights[block * 6u + j / 2u];
  let q = select(both.xy, both.zw, (j & 1u) == 1u);
  let signs = weights[block * 6u + 4u + j / 4u][j & 3u];
  let d = half_at(weight_side[TABLE_WORDS + block / 2u], block);
  let a = points4(q.x & 255u, (q.x >> 8u) & 255u, even_signs(signs));
  let b = points4((q.x >> 16u) & 255u, q.x >> 24u, even_signs(signs >> 7u));
  let c = points4(q.y & 255u, (q.y >> 8u) & 255u, even_signs(signs >> 14u));
  let e = points4((q.y >> 16u) & 255u, q.y >> 24u, even_signs(signs >> 21u));
  return Group(vec4<u32>(a, b), vec4<u32>(c, e), d * (f32(signs >> 28u) + 0.5) * 0.5);
}
