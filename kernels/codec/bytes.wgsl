// Shared by the block codecs: four packed bytes as floats, and the integer dot product of a group's
// 32 bytes with 32 quantised activations.
fn signed_bytes(q: u32) -> vec4<f32> {
  return vec4<f32>(unpack4xI8(q));
}

fn unsigned_bytes(q: u32) -> vec4<f32> {
  return vec4<f32>(unpack4xU8(q));
}

fn dot_half(q: vec4<u32>, x: vec4<u32>, acc: i32) -> i32 {
  return dot_i8(q.w, x.w, dot_i8(q.z, x.z, dot_i8(q.y, x.y, dot_i8(q.x, x.x, acc))));
}

// The f16 at index i of a plane of packed pairs.
fn half_at(pair: u32, i: u32) -> f32 {
  let both = unpack2x16float(pair);
  return select(both.x, both.y, (i & 1u) == 1u);
}
