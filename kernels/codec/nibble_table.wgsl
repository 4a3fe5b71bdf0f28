// Plane 1 begins with a table of 256 words: for a byte of two nibbles the values of a codebook, the low
// nibble's in bits 0..7 and the high one's in bits 16..23. What else is in plane 1 follows.
const TABLE_WORDS = 256u;

// The signed bytes of the four low and of the four high nibbles.
fn nibble_values(q: u32) -> vec2<u32> {
  let first = weight_side[q & 255u] | (weight_side[(q >> 8u) & 255u] << 8u);
  let second = weight_side[(q >> 16u) & 255u] | (weight_side[q >> 24u] << 8u);
  return vec2<u32>((first & 0xffffu) | (second << 16u), (first >> 16u) | (second & 0xffff0000u));
}
