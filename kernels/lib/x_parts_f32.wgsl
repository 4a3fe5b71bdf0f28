// Rows of an f32 value for cooperative matrices: vectors of 4 elements, halves when they are used.
//! include lib/x_f32.wgsl
//! include lib/to_halves.wgsl
@group(0) @binding(6) var<storage, read> x: array<vec4<f32>>;

// Vector `i` of a column; any beyond the last group.
fn load_part(column: u32, i: u32) -> vec4<f32> {
  return load_x4(column, min(i, GROUPS * 8u - 1u));
}

fn part_halves(part: vec4<f32>) -> vec4<f16> {
  return to_halves(part);
}
