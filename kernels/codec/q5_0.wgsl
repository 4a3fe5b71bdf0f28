// Q5_0: blocks of 32 values d * (q - 16). Plane 0: 16 bytes a block, byte i holds the low four bits of
// value i in its low and of value i + 16 in its high nibble. Plane 1: three words for two blocks: the
// upper bits of the first, of the second (bit i of value i), both d (f16).
//! include codec/planes.wgsl
//! include codec/offset_group.wgsl
//! include codec/spread.wgsl
const OFFSET = 16;
const BYTE_FLIP = 0u;
const BYTE_ZERO = 16.0;

fn load_group(row: u32, group: u32) -> Group {
  let i = row * GROUPS + group;
  let q = weights[i];
  let pair = (i / 2u) * 3u;
  let upper = weight_side[pair + (i & 1u)];
  return Group(low_fives(q, upper), high_fives(q, upper), half_at(weight_side[pair + 2u], i));
}
