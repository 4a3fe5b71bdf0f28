// Integers of 8 bits in blocks of 32 BLOCK_GROUPS values d * (q - zero). Plane 0: 32 signed bytes a
// group; plane 1: d and zero of a block, f16.
//! include codec/planes.wgsl
//! include codec/zero_group.wgsl

fn code_floats(q: u32) -> vec4<f32> {
  return signed_bytes(q);
}

fn load_group(row: u32, group: u32) -> Group {
  let i = row * GROUPS + group;
  return Group(weights[i * 2u], weights[i * 2u + 1u], unpack2x16float(weight_side[i / BLOCK_GROUPS]));
}
