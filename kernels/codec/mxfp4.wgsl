// MXFP4: blocks of 32 values 2^(e - 128) * codebook[q], the codebook twice E2M1's values. Plane 0: 16
// bytes a block as in IQ4_NL; plane 1 after the table: e, a byte.
//! include codec/planes.wgsl
//! include codec/nibble_group.wgsl

fn load_group(row: u32, group: u32) -> Group {
  let i = row * GROUPS + group;
  let e = (weight_side[TABLE_WORDS + i / 4u] >> (8u * (i & 3u))) & 255u;
  // Below 2 the power is a denormal number.
  let bits = select((e - 1u) << 23u, 0x00200000u << e, e < 2u);
  return nibble_group(weights[i], bitcast<f32>(bits));
}
