// Rows of an f16 value for cooperative matrices: vectors of 4 elements; 32 divides COLS.
@group(0) @binding(6) var<storage, read> x: array<vec4<f16>>;

// Vector `i` of a column; any beyond the last group.
fn load_part(column: u32, i: u32) -> vec4<f16> {
  return x[column * X_STRIDE4 + min(i, GROUPS * 8u - 1u)];
}

fn part_halves(part: vec4<f16>) -> vec4<f16> {
  return part;
}
