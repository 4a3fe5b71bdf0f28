// TQ2_0: blocks of 256 values d * (q - 1). Plane 0: 4 vectors a block: 64 bytes of bit pairs, of which
// each 32 hold 128 values, the group of 32 at t = 0..3 in the bits from 2 t on; plane 1: d, f16.
//! include codec/planes.wgsl
//! include codec/offset_group.wgsl
const OFFSET = 1;

fn load_group(row: u32, group: u32) -> Group {
  let block = row * (GROUPS / 8u) + group / 8u;
  let j = group % 8u;
  let pair = vec4<u32>(2u * (j & 3u));
  let q = block * 4u + 2u * (j / 4u);
  return Group((weights[q] >> pair) & vec4<u32>(0x03030303u),
               (weights[q + 1u] >> pair) & vec4<u32>(0x03030303u),
               half_at(weight_side[block / 2u], block));
}
