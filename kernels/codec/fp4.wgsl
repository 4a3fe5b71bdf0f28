// Nibbles that are E2M1 floats: a sign, two bits of exponent, one of mantissa.

// The bytes' nibbles, twice their values, as signed bytes: 0, 1, 2, 3, 4, 6, 8, 12 and their negatives.
fn fp4(q: vec4<u32>) -> vec4<u32> {
  let one = vec4<u32>(0x01010101u);
  let low = q & vec4<u32>(0x03030303u);
  let upper = ((q >> vec4<u32>(2u)) & one) * 255u;
  let both = low & (low >> vec4<u32>(1u)) & one;
  let size = low + (upper & (vec4<u32>(0x04040404u) + low + (both << vec4<u32>(1u))));
  let negative = (q >> vec4<u32>(3u)) & one;
  let flipped = size ^ (negative * 255u);
  return ((flipped & vec4<u32>(0x7f7f7f7fu)) + negative) ^ (flipped & vec4<u32>(0x80808080u));
}

fn low_nibbles(q: vec4<u32>) -> vec4<u32> {
  return fp4(q & vec4<u32>(0x0f0f0f0fu));
}

fn high_nibbles(q: vec4<u32>) -> vec4<u32> {
  return fp4((q >> vec4<u32>(4u)) & vec4<u32>(0x0f0f0f0fu));
}
