// The head of a block of Q4_K and Q5_K: d and dmin (f16), then twelve bytes of 6-bit scales and mins.
// d * scale and dmin * min of group j.
fn scale_and_min(head: vec4<u32>, j: u32) -> vec2<f32> {
  let shift = 8u * (j & 3u);
  var scale = (head.y >> shift) & 63u;
  var low = (head.z >> shift) & 63u;
  if (j >= 4u) {
    scale = ((head.w >> shift) & 15u) | (((head.y >> (shift + 6u)) & 3u) << 4u);
    low = ((head.w >> (shift + 4u)) & 15u) | (((head.z >> (shift + 6u)) & 3u) << 4u);
  }
  return unpack2x16float(head.x) * vec2<f32>(f32(scale), f32(low));
}
