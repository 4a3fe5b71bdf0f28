// Rows of X_WIDTH elements of the q8 value `x` (lib/q8_block.wgsl); with X_RMS the blocks' sums of
// squares follow, of which the row's RMS factor is made. Needs a codec.
@group(0) @binding(6) var<storage, read> x: array<vec4<u32>>;

// Group `group` as it lies in memory; the pairs of d and sum are of two groups.
struct XBits {
  lo: vec4<u32>,
  hi: vec4<u32>,
  pairs: vec4<u32>,
}

fn load_x_bits(column: u32, group: u32) -> XBits {
  let row = column * X_STRIDE4;
  return XBits(x[row + group], x[row + X_WIDTH / 32u + group], x[row + X_WIDTH / 16u + group / 2u]);
}

fn scale_bits(bits: XBits, group: u32) -> vec2<u32> {
  return select(bits.pairs.xy, bits.pairs.zw, (group & 1u) == 1u);
}

fn load_x(column: u32, group: u32) -> XGroup {
  let bits = load_x_bits(column, group);
  let scale = scale_bits(bits, group);
  return XGroup(bits.lo, bits.hi, bitcast<f32>(scale.x), bitcast<i32>(scale.y));
}

// The sum of squares of block `group`.
fn load_square(column: u32, group: u32) -> f32 {
  const first = X_WIDTH / 4u + X_WIDTH / 16u;  // words before the squares
  let word = first + group;
  return bitcast<f32>(x[column * X_STRIDE4 + word / 4u][word % 4u]);
}
