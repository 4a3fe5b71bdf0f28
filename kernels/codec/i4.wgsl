// Integers of 4 bits in blocks of 32 BLOCK_GROUPS values d * (q - zero). Plane 0: 16 bytes a group, byte
// i holds value i in its low and value i + 16 in its high nibble; plane 1: d and zero of a block, f16.
//! include codec/planes.wgsl
//! include codec/zero_group.wgsl

fn code_floats(q: u32) -> vec4<f32> {
  return unsigned_bytes(q);
}

fn load_group(row: u32, group: u32) -> Group {
  let i = row * GROUPS + group;
  let q = weights[i];
  return Group(q & vec4<u32>(0x0f0f0f0fu), (q >> vec4<u32>(4u)) & vec4<u32>(0x0f0f0f0fu),
               unpack2x16float(weight_side[i / BLOCK_GROUPS]));
}
