// NVFP4: blocks of 64 values in 4 groups of 16, value = scale / 2 * q, q twice E2M1's values. Plane 0: 2
// vectors a block; of a group's 8 bytes byte i holds value i in its low and value i + 8 in its high
// nibble. Plane 1: four scales, bytes of 4 bits of exponent and 3 of mantissa.
//! include codec/planes.wgsl
//! include codec/signed_halves.wgsl
//! include codec/fp4.wgsl

// Half a scale.
fn half_scale(bits: u32) -> f32 {
  let e = (bits >> 3u) & 15u;
  let m = f32(bits & 7u);
  let scale = select((8.0 + m) * bitcast<f32>((e + 116u) << 23u), m * 0.0009765625, e == 0u);
  return select(scale, 0.0, (bits & 255u) == 0x7fu);
}

fn load_group(row: u32, group: u32) -> Group {
  let i = row * GROUPS + group;
  let q = weights[i];
  let low = low_nibbles(q);
  let high = high_nibbles(q);
  let scales = weight_side[i / 2u] >> (16u * (i & 1u));
  return Group(vec4<u32>(low.xy, high.xy), vec4<u32>(low.zw, high.zw), half_scale(scales),
               half_scale(scales >> 8u));
}
