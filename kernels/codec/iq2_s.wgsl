// IQ2_S: blocks of 256 values in 16 groups of 16, value = d * (s + 1/2) / 4 * sign * grid value. Plane
// 0: 4 vectors a block, a word a group of 32: low bytes of four indices, then as much of signs. Plane 1:
// the grid of 1024 points of 8, then five words a block: upper bit pairs of the indices, a byte a group;
// 16 s of 4 bits; d, f16.
//! include codec/planes.wgsl
//! include codec/signed_halves.wgsl
//! include codec/grid.wgsl
const TABLE_WORDS = 2048u;

fn load_group(row: u32, group: u32) -> Group {
  let block = row * (GROUPS / 8u) + group / 8u;
  let j = group % 8u;
  let low = weights[block * 4u + j / 4u][j & 3u];
  let signs = weights[block * 4u + 2u + j / 4u][j & 3u];
  let side = TABLE_WORDS + block * 5u;
  let byte = 8u * (j & 3u);
  let upper = weight_side[side + j / 4u] >> byte;
  let scales = weight_side[side + 2u + j / 4u] >> byte;
  let d = unpack2x16float(weight_side[side + 4u]).x;
  let a = point8((low & 255u) | ((upper & 3u) << 8u), signs);
  let b = point8(((low >> 8u) & 255u) | ((upper & 12u) << 6u), signs >> 8u);
  let c = point8(((low >> 16u) & 255u) | ((upper & 48u) << 4u), signs >> 16u);
  let e = point8((low >> 24u) | ((upper & 192u) << 2u), signs >> 24u);
  return Group(vec4<u32>(a, b), vec4<u32>(c, e), d * (f32(scales & 15u) + 0.5) * 0.25,
               d * (f32((scales >> 4u) & 15u) + 0.5) * 0.25);
}
