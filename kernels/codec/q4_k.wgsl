// Q4_K: blocks of 256 values in 8 groups of 32, value = d * scale * q - dmin * min. 9 vectors a block:
// the head (codec/k_scales.wgsl), then 128 bytes of nibbles, of which each 32 hold two groups, the
// even one in the low nibbles.
//! include codec/planes.wgsl
//! include codec/min_group.wgsl
//! include codec/k_scales.wgsl

fn load_group(row: u32, group: u32) -> Group {
  let block = (row * (GROUPS / 8u) + group / 8u) * 9u;
  let j = group % 8u;
  let dm = scale_and_min(weights[block], j);
  let q = block + 1u + (j / 2u) * 2u;
  let nibble = vec4<u32>(4u * (j & 1u));
  return Group((weights[q] >> nibble) & vec4<u32>(0x0f0f0f0fu),
               (weights[q + 1u] >> nibble) & vec4<u32>(0x0f0f0f0fu), dm.x, dm.y);
}
