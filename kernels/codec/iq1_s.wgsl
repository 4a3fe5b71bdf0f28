// IQ1_S: blocks of 256 values in 8 groups of 32, value = d * (2 s + 1) * (grid value + 1/8 or - 1/8).
// Plane 0: 3 vectors a block: low bytes of four indices a group, then 16 bits a group: three upper bits
// of each, s of 3 bits, whether the shift is negative. Plane 1: the grid, then d, f16.
//! include codec/planes.wgsl
//! include codec/signed_group.wgsl
//! include codec/ternary_grid.wgsl

fn load_group(row: u32, group: u32) -> Group {
  let block = row * (GROUPS / 8u) + group / 8u;
  let j = group % 8u;
  let low = weights[block * 3u + j / 4u][j & 3u];
  let upper = weights[block * 3u + 2u][j / 2u] >> (16u * (j & 1u));
  let negative = (upper & 0x8000u) != 0u;
  let d = half_at(weight_side[TABLE_WORDS + block / 2u], block);
  let a = shifted_point((low & 255u) | ((upper & 7u) << 8u), negative);
  let b = shifted_point(((low >> 8u) & 255u) | ((upper & 0x38u) << 5u), negative);
  let c = shifted_point(((low >> 16u) & 255u) | ((upper & 0x1c0u) << 2u), negative);
  let e = shifted_point((low >> 24u) | ((upper & 0xe00u) >> 1u), negative);
  return Group(shifted_half(a, b), shifted_half(c, e),
               d * f32(((upper >> 12u) & 7u) * 2u + 1u) * 0.125);
}
