// acc + the dot product of four signed bytes, by the device's instruction.
fn dot_i8(a: u32, b: u32, acc: i32) -> i32 {
  return dot4I8Packed(a, b) + acc;
}
