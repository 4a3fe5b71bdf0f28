// Rows of X_WIDTH elements of the q8 value `x` (lib/q8_block.wgsl); with X_RMS the blocks' sums of
// squares follow, of which the row's RMS factor is made. Needs a codec.
@group(0) @binding(6) var<storage, read> x: array<vec4<u32>>;

fn load_x(column: u32, group: u32) -> XGroup {
  let row = column * X_STRIDE4;
  let two = x[row + X_WIDTH / 16u + group / 2u];
  let one = select(two.xy, two.zw, (group & 1u) == 1u);
  return XGroup(x[row + group], x[row + X_WIDTH / 32u + group], bitcast<f32>(one.x),
                bitcast<i32>(one.y));
}

// The sum of squares of block `group`.
fn load_square(column: u32, group: u32) -> f32 {
  const first = X_WIDTH / 4u + X_WIDTH / 16u;  // words before the squares
  let word = first + group;
  return bitcast<f32>(x[column * X_STRIDE4 + word / 4u][word % 4u]);
}
