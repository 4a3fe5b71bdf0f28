// Q4_0: blocks of 32 values d * (q - 8). Plane 0: 16 bytes a block, byte i holds value i in its low
// and value i + 16 in its high nibble; plane 1: d, f16.
// Includes: lib/scale_*.
//! include codec/planes.wgsl
//! include codec/offset_group.wgsl
const OFFSET = 8;
const BYTE_FLIP = 0u;
const BYTE_ZERO = 8.0;

fn load_group(row: u32, group: u32) -> Group {
  let q = weights[row * GROUPS + group];
  return Group(q & vec4<u32>(0x0f0f0f0fu), (q >> vec4<u32>(4u)) & vec4<u32>(0x0f0f0f0fu),
               group_scale(row, group));
}
