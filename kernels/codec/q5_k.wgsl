// Q5_K: as Q4_K with 11 vectors a block: after the head 32 bytes of upper bits, bit j of byte i for
// value i of group j.
//! include codec/planes.wgsl
//! include codec/min_group.wgsl
//! include codec/k_scales.wgsl

fn load_group(row: u32, group: u32) -> Group {
  let block = (row * (GROUPS / 8u) + group / 8u) * 11u;
  let j = group % 8u;
  let dm = scale_and_min(weights[block], j);
  let q = block + 3u + (j / 2u) * 2u;
  let nibble = vec4<u32>(4u * (j & 1u));
  let mask4 = vec4<u32>(0x0f0f0f0fu);
  let mask1 = vec4<u32>(0x01010101u);
  let up = vec4<u32>(4u);
  return Group(((weights[q] >> nibble) & mask4) | (((weights[block + 1u] >> vec4<u32>(j)) & mask1) << up),
               ((weights[q + 1u] >> nibble) & mask4) |
                   (((weights[block + 2u] >> vec4<u32>(j)) & mask1) << up),
               dm.x, dm.y);
}
