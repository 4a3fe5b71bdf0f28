// Bits of a word, spread over bytes.

// Bits 0..3 of `bits` as the lowest bits of the four bytes.
fn spread4(bits: u32) -> u32 {
  return ((bits & 15u) * 0x00204081u) & 0x01010101u;
}

// Bits 0..15 as the lowest bits of 16 bytes.
fn spread16(bits: u32) -> vec4<u32> {
  return (((vec4<u32>(bits) >> vec4<u32>(0u, 4u, 8u, 12u)) & vec4<u32>(15u)) * vec4<u32>(0x00204081u)) &
         vec4<u32>(0x01010101u);
}

// Nibbles with a fifth bit each: those of the low ones from bit 0 of `upper` on, of the high ones from
// bit 16 on.
fn low_fives(q: vec4<u32>, upper: u32) -> vec4<u32> {
  return (q & vec4<u32>(0x0f0f0f0fu)) | (spread16(upper) << vec4<u32>(4u));
}

fn high_fives(q: vec4<u32>, upper: u32) -> vec4<u32> {
  return ((q >> vec4<u32>(4u)) & vec4<u32>(0x0f0f0f0fu)) | (spread16(upper >> 16u) << vec4<u32>(4u));
}
