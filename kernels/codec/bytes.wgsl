// Shared by the block codecs: four packed bytes as floats, and the integer dot product of a group's
// 32 bytes with 32 quantised activations.
fn signed_bytes(q: u32) -> vec4<f32> {
  return vec4<f32>(unpack4xI8(q));
}

fn unsigned_bytes(q: u32) -> vec4<f32> {
  return vec4<f32>(unpack4xU8(q));
}

// A group of 32 quantised activations: value = d * q; sum = the sum of the q.
struct XGroup {
  lo: vec4<u32>,  // a q in each byte
  hi: vec4<u32>,
  d: f32,
  sum: i32,
}

fn dot_half(q: vec4<u32>, x: vec4<u32>, acc: i32) -> i32 {
  return dot_i8(q.w, x.w, dot_i8(q.z, x.z, dot_i8(q.y, x.y, dot_i8(q.x, x.x, acc))));
}

// A sum of products below 2^22 that began with BLOCK_ZERO, as a float: it went into the digits of
// 1.5 * 2^23, which is as exact as a conversion and cheaper.
const BLOCK_ZERO = 0x4b400000;

fn block_float(sum: i32) -> f32 {
  return bitcast<f32>(sum) - 12582912.0;
}

// The dot product of a group's bytes with the quants of x, and `start`.
fn block_dot(lo: vec4<u32>, hi: vec4<u32>, x: XGroup, start: i32) -> f32 {
  return block_float(dot_half(hi, x.hi, dot_half(lo, x.lo, BLOCK_ZERO + start)));
}

// The f16 at index i of a plane of packed pairs.
fn half_at(pair: u32, i: u32) -> f32 {
  let both = unpack2x16float(pair);
  return select(both.x, both.y, (i & 1u) == 1u);
}

// The differences of bytes of 0..127 and those of `by`, as signed bytes.
fn less(q: vec4<u32>, by: u32) -> vec4<u32> {
  return ((q | vec4<u32>(0x80808080u)) - vec4<u32>(by)) ^ vec4<u32>(0x80808080u);
}
