// Q8_0: blocks of 32 values d * q. Plane 0: 32 signed bytes a block; plane 1: d, f16.
// Includes: lib/scale_*.
//! include codec/planes.wgsl
//! include codec/signed_group.wgsl
const BYTE_FLIP = 0x80808080u;
const BYTE_ZERO = 128.0;

fn load_group(row: u32, group: u32) -> Group {
  let i = row * GROUPS + group;
  return Group(weights[i * 2u], weights[i * 2u + 1u], group_scale(row, group));
}
