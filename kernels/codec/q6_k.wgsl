// Q6_K: blocks of 256 values in 16 groups of 16, value = d * scale * (q - 32). Plane 0: 13 vectors a
// block: 128 bytes of low nibbles, 64 of upper bit pairs, 16 signed scales; plane 1: d, f16. Of each
// 128 values the group of 32 at t = 0..3 has its nibbles in the bytes 32 * (t & 1).., low for t < 2,
// and its bit pairs at bit 2 t of the 32 bytes.
//! include codec/planes.wgsl
//! include codec/signed_halves.wgsl

fn load_group(row: u32, group: u32) -> Group {
  let block = row * (GROUPS / 8u) + group / 8u;
  let j = group % 8u;
  let t = j & 3u;
  let low = block * 13u + 4u * (j / 4u) + 2u * (t & 1u);
  let upper = block * 13u + 8u + 2u * (j / 4u);
  let nibble = vec4<u32>(4u * (t / 2u));
  let pair = vec4<u32>(2u * t);
  let mask4 = vec4<u32>(0x0f0f0f0fu);
  let mask2 = vec4<u32>(0x03030303u);
  let lo = ((weights[low] >> nibble) & mask4) | (((weights[upper] >> pair) & mask2) << vec4<u32>(4u));
  let hi = ((weights[low + 1u] >> nibble) & mask4) |
           (((weights[upper + 1u] >> pair) & mask2) << vec4<u32>(4u));
  let scales = bitcast<i32>(weights[block * 13u + 12u][j / 2u]) << (16u - 16u * (j & 1u));
  let d = half_at(weight_side[block >> 1u], block);
  return Group(less(lo, 0x20202020u), less(hi, 0x20202020u), d * f32((scales << 8u) >> 24u),
               d * f32(scales >> 24u));
}
