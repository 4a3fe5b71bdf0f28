// Q3_K: blocks of 256 values in 16 groups of 16, value = d * (scale - 32) * (q - 4). 7 vectors a block:
// 32 bytes of upper bits, bit j of byte i for value i of the group of 32 at j; 64 bytes of bit pairs as
// in Q2_K; twelve bytes of 6-bit scales: the low four bits in nibbles of bytes 0..7 (low ones first),
// bit pairs in bytes 8..11; d, f16; two bytes of padding.
//! include codec/planes.wgsl
//! include codec/signed_halves.wgsl

fn load_group(row: u32, group: u32) -> Group {
  let block = (row * (GROUPS / 8u) + group / 8u) * 7u;
  let j = group % 8u;
  let pair = vec4<u32>(2u * (j & 3u));
  let q = block + 2u + 2u * (j / 4u);
  let bit = vec4<u32>(j);
  let mask2 = vec4<u32>(0x03030303u);
  let mask1 = vec4<u32>(0x01010101u);
  // Less 4 where the upper bit is 0: pairs are below 4, so that 0xfc is added to them without a carry.
  let lo = ((weights[q] >> pair) & mask2) + (~(weights[block] >> bit) & mask1) * 0xfcu;
  let hi = ((weights[q + 1u] >> pair) & mask2) + (~(weights[block + 1u] >> bit) & mask1) * 0xfcu;
  // Scales 2 j and 2 j + 1.
  let tail = weights[block + 6u];
  let byte = 16u * (j & 1u);
  let nibbles = select(tail.x, tail.y, (j & 2u) != 0u) >> (byte + 4u * (j / 4u));
  let pairs = tail.z >> (byte + 2u * (j / 2u));
  let scales = (nibbles & 0x0f0fu) | ((pairs & 0x0303u) << 4u);
  let d = unpack2x16float(tail.w).x;
  return Group(lo, hi, d * (f32(scales & 63u) - 32.0),
               d * (f32(scales >> 8u) - 32.0));
}
