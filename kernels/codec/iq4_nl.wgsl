// IQ4_NL: blocks of 32 values d * codebook[q]. Plane 0: 16 bytes a block, byte i holds value i in its
// low and value i + 16 in its high nibble; plane 1 after the table: d, f16.
//! include codec/planes.wgsl
//! include codec/nibble_group.wgsl

fn load_group(row: u32, group: u32) -> Group {
  let i = row * GROUPS + group;
  return nibble_group(weights[i], half_at(weight_side[TABLE_WORDS + i / 2u], i));
}
