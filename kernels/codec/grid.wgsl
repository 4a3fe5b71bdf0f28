// Plane 1 begins with a grid, a table of points of 8 or 4 values, one a byte. Signs are apart.
//! include codec/spread.wgsl

// The four positive bytes with those negated whose bit of `signs` is set.
fn with_signs(q: u32, signs: u32) -> u32 {
  let negative = spread4(signs);
  return (q ^ (negative * 255u)) + negative;
}

// A point of 8 values.
fn point8(i: u32, signs: u32) -> vec2<u32> {
  return vec2<u32>(with_signs(weight_side[i * 2u], signs),
                   with_signs(weight_side[i * 2u + 1u], signs >> 4u));
}

// Two points of 4 values.
fn points4(first: u32, second: u32, signs: u32) -> vec2<u32> {
  return vec2<u32>(with_signs(weight_side[first], signs),
                   with_signs(weight_side[second], signs >> 4u));
}

// Seven signs and an eighth that makes the number of negative ones even.
fn even_signs(seven: u32) -> u32 {
  let signs = seven & 127u;
  return signs | ((countOneBits(signs) & 1u) << 7u);
}
