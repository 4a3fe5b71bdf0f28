// Q4_1: blocks of 32 values d * q + m. Plane 0: 16 bytes a block, byte i holds value i in its low
// and value i + 16 in its high nibble; plane 1: d and m, f16.
//! include codec/planes.wgsl
//! include codec/min_group.wgsl

fn load_group(row: u32, group: u32) -> Group {
  let i = row * GROUPS + group;
  let q = weights[i];
  let dm = unpack2x16float(weight_side[i]);
  return Group(q & vec4<u32>(0x0f0f0f0fu), (q >> vec4<u32>(4u)) & vec4<u32>(0x0f0f0f0fu), dm.x, -dm.y);
}
