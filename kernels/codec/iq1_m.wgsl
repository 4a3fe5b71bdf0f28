// IQ1_M: blocks of 256 values in 16 groups of 16, value = d * (2 s + 1) * (grid value + 1/8 or - 1/8),
// with a shift for each 8. Plane 0: 3 vectors a block: low bytes of four indices for 32 values, then four
// bits for each index: three upper bits and whether the shift is negative. Plane 1: the grid, then two
// words a block: four times 16 bits: four s of 3 bits and a quarter of d (f16), the lowest first.
//! include codec/planes.wgsl
//! include codec/signed_halves.wgsl
//! include codec/ternary_grid.wgsl

fn load_group(row: u32, group: u32) -> Group {
  let block = row * (GROUPS / 8u) + group / 8u;
  let j = group % 8u;
  let low = weights[block * 3u + j / 4u][j & 3u];
  let upper = weights[block * 3u + 2u][j / 2u] >> (16u * (j & 1u));
  let first = weight_side[TABLE_WORDS + block * 2u];
  let second = weight_side[TABLE_WORDS + block * 2u + 1u];
  let d = unpack2x16float(((first >> 12u) & 15u) | ((first >> 24u) & 0xf0u) |
                          ((second >> 4u) & 0xf00u) | ((second >> 16u) & 0xf000u)).x * 0.125;
  let scales = select(first, second, j >= 4u) >> (16u * ((j / 2u) & 1u) + 6u * (j & 1u));
  let a = shifted_point((low & 255u) | ((upper & 7u) << 8u), (upper & 8u) != 0u);
  let b = shifted_point(((low >> 8u) & 255u) | ((upper & 0x70u) << 4u), (upper & 0x80u) != 0u);
  let c = shifted_point(((low >> 16u) & 255u) | (upper & 0x700u), (upper & 0x800u) != 0u);
  let e = shifted_point((low >> 24u) | ((upper & 0x7000u) >> 4u), (upper & 0x8000u) != 0u);
  return Group(shifted_half(a, b), shifted_half(c, e), d * f32((scales & 7u) * 2u + 1u),
               d * f32(((scales >> 3u) & 7u) * 2u + 1u));
}
