// Rotation of pairs of elements by the angles of a position.
@group(0) @binding(9) var<storage, read> rope: array<f32>;  // rows of ROPE_STRIDE: cos, sin of each pair

// The elements that pair `pair` rotates.
fn pair_elements(pair: u32) -> vec2<u32> {
  if (INTERLEAVED) {
    return vec2<u32>(pair * 2u, pair * 2u + 1u);
  }
  return vec2<u32>(pair, pair + ROTARY_DIM / 2u);
}

fn rotated(a: f32, b: f32, pair: u32, position: u32) -> vec2<f32> {
  let c = rope[position * ROPE_STRIDE + pair * 2u];
  let s = rope[position * ROPE_STRIDE + pair * 2u + 1u];
  return vec2<f32>(fma(a, c, -(b * s)), fma(b, c, a * s));
}
