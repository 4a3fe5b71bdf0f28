// MXFP4: blocks of 32 values 2^(e - 128) * q, q twice E2M1's values. Plane 0: 16 bytes a block, byte i
// holds value i in its low and value i + 16 in its high nibble; plane 1: e, a byte.
//! include codec/planes.wgsl
//! include codec/signed_group.wgsl
//! include codec/fp4.wgsl

fn load_group(row: u32, group: u32) -> Group {
  let i = row * GROUPS + group;
  let q = weights[i];
  let e = (weight_side[i / 4u] >> (8u * (i & 3u))) & 255u;
  // Below 2 the power is a denormal number.
  let bits = select((e - 1u) << 23u, 0x00200000u << e, e < 2u);
  return Group(low_nibbles(q), high_nibbles(q), bitcast<f32>(bits));
}
