// IQ2_XS: blocks of 256 values in 16 groups of 16, value = d * (s + 1/2) / 4 * sign * grid value. Plane
// 0: 4 vectors a block, four times 16 bits a group of 32: an index of 9 bits, 7 signs. Plane 1: the grid
// of 512 points of 8, then three words a block: 16 s of 4 bits, and d, f16.
//! include codec/planes.wgsl
//! include codec/signed_halves.wgsl
//! include codec/grid.wgsl
const TABLE_WORDS = 1024u;

fn load_group(row: u32, group: u32) -> Group {
  let i = row * GROUPS + group;
  let j = group % 8u;
  let both = weights[i / 2u];
  let q = select(both.xy, both.zw, (i & 1u) == 1u);
  let side = TABLE_WORDS + i / 8u * 3u;
  let scales = weight_side[side + j / 4u] >> (8u * (j & 3u));
  let d = unpack2x16float(weight_side[side + 2u]).x;
  let a = point8(q.x & 511u, even_signs(q.x >> 9u));
  let b = point8((q.x >> 16u) & 511u, even_signs(q.x >> 25u));
  let c = point8(q.y & 511u, even_signs(q.y >> 9u));
  let e = point8((q.y >> 16u) & 511u, even_signs(q.y >> 25u));
  return Group(vec4<u32>(a, b), vec4<u32>(c, e), d * (f32(scales & 15u) + 0.5) * 0.25,
               d * (f32((scales >> 4u) & 15u) + 0.5) * 0.25);
}
