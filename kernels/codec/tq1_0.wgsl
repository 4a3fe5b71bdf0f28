// TQ1_0: blocks of 256 values d * (q - 1), q digits to base 3, five a byte: digit n of byte b is the
// integer part of 3 * fract(3^n b / 256). Plane 0: 3 vectors a block: 32 bytes of values 32 n + i, then
// 16 bytes of values 160 + 16 n + i. Plane 1: two words: 4 bytes of values 240 + 4 n + i, then d, f16.
//! include codec/planes.wgsl
//! include codec/offset_group.wgsl
const OFFSET = 1;

// Digits of all bytes; `power` is 3 to the digit's place.
fn digits(q: vec4<u32>, power: vec4<u32>) -> vec4<u32> {
  let low = vec4<u32>(0x00ff00ffu);
  let even = (((q & low) * power) & low) * vec4<u32>(3u);
  let odd = ((((q >> vec4<u32>(8u)) & low) * power) & low) * vec4<u32>(3u);
  return ((even >> vec4<u32>(8u)) & vec4<u32>(0x00030003u)) | (odd & vec4<u32>(0x03000300u));
}

fn power_of_three(n: u32) -> vec4<u32> {
  return vec4<u32>((0x511b0903u >> (8u * (n - 1u)) & 255u) * u32(n > 0u) + u32(n == 0u));
}

fn load_group(row: u32, group: u32) -> Group {
  let block = row * (GROUPS / 8u) + group / 8u;
  let j = group % 8u;
  let q = block * 3u;
  let d = unpack2x16float(weight_side[block * 2u + 1u]).x;
  if (j < 5u) {
    let power = power_of_three(j);
    return Group(digits(weights[q], power), digits(weights[q + 1u], power), d);
  }
  let n = 2u * (j - 5u);
  let last = vec4<u32>(weight_side[block * 2u]);
  let bytes = weights[q + 2u];
  if (j < 7u) {
    return Group(digits(bytes, power_of_three(n)), digits(bytes, power_of_three(n + 1u)), d);
  }
  return Group(digits(bytes, power_of_three(4u)), digits(last, vec4<u32>(1u, 3u, 9u, 27u)), d);
}
