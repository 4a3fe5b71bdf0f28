// NVFP4: blocks of 64 values in 4 groups of 16, value = scale * codebook[q], the codebook twice E2M1's
// values. Plane 0: 2 vectors a block; of a group's 8 bytes byte i holds value i in its low and value
// i + 8 in its high nibble. Plane 1 after the table: four scales, bytes of 4 bits of exponent and 3 of
// mantissa, that stand for twice the scale.
//! include codec/planes.wgsl
//! include codec/signed_halves.wgsl
//! include codec/nibble_table.wgsl

fn scale_of(bits: u32) -> f32 {
  let e = (bits >> 3u) & 15u;
  let m = f32(bits & 7u);
  let scale = select((8.0 + m) * bitcast<f32>((e + 116u) << 23u), m * 0.0009765625, e == 0u);
  return select(scale, 0.0, (bits & 255u) == 0x7fu);
}

fn load_group(row: u32, group: u32) -> Group {
  let i = row * GROUPS + group;
  let q = weights[i];
  let a = nibble_values(q.x);
  let b = nibble_values(q.y);
  let c = nibble_values(q.z);
  let d = nibble_values(q.w);
  let scales = weight_side[TABLE_WORDS + i / 2u] >> (16u * (i & 1u));
  return Group(vec4<u32>(a.x, b.x, a.y, b.y), vec4<u32>(c.x, d.x, c.y, d.y), scale_of(scales),
               scale_of(scales >> 8u));
}
