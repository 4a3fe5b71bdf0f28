// Plane 1 begins with a grid of 2048 points of 8 values v = -1, 0 or 1, as bytes 8 v + 9.
const TABLE_WORDS = 4096u;

// 8 v + 1 or, for `negative`, 8 v - 1, as signed bytes.
fn shifted_point(i: u32, negative: bool) -> vec2<u32> {
  let v = vec2<u32>(weight_side[i * 2u], weight_side[i * 2u + 1u]);
  return select(v + vec2<u32>(0x01010101u), v - vec2<u32>(0x01010101u), negative);
}

// A half of a group of two points, signed.
fn shifted_half(first: vec2<u32>, second: vec2<u32>) -> vec4<u32> {
  return less(vec4<u32>(first, second), 0x09090909u);
}
