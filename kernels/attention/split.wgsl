// One range of several: sums for the merge, [column][head][range].
@group(0) @binding(1) var<storage, read_write> partial_values: array<vec4<f32>>;
@group(0) @binding(7) var<storage, read_write> partial_stats: array<vec2<f32>>;  // maximum, sum

fn finish(column: u32, head: u32, range: u32, slot4: u32, total: vec4<f32>, largest: f32, sum: f32,
          valid: bool, lid: u32) {
  let at = (column * HEADS + head) * MAX_RANGES + range;
  if (valid) {
    partial_values[at * (VALUE_DIM / 4u) + slot4] = total;
    if (slot4 == 0u) {
      partial_stats[at] = vec2<f32>(largest, sum);
    }
  }
}
