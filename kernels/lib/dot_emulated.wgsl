// acc + the dot product of four signed bytes, by plain integer arithmetic.
fn dot_i8(a: u32, b: u32, acc: i32) -> i32 {
  let x = bitcast<i32>(a);
  let y = bitcast<i32>(b);
  return acc + ((x << 24u) >> 24u) * ((y << 24u) >> 24u) + ((x << 16u) >> 24u) * ((y << 16u) >> 24u) +
         ((x << 8u) >> 24u) * ((y << 8u) >> 24u) + (x >> 24u) * (y >> 24u);
}
