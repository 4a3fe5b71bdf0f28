// Joins the ranges of split attention in their order. Includes: out/* (with
// lib/reduce_* for q8). Dispatch: x over vectors of 4 of the heads, y over columns.
//! include lib/step.wgsl
//! include attention/score.wgsl
@group(0) @binding(2) var<storage, read> partial_values: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> columns: array<vec4<u32>>;  // token, position, slot
@group(0) @binding(4) var<storage, read> partial_stats: array<vec2<f32>>;

@compute @workgroup_size(WORKGROUP_X)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
  let i = wid.x * WORKGROUP_X + lid;
  let valid = i < HEADS * (VALUE_DIM / 4u);
  var result = vec4<f32>();
  if (valid) {
    let own = columns[wid.y].y;
    let begin = first_key(own) / KEYS_PER_RANGE;
    let to = own / KEYS_PER_RANGE;
    let row = (wid.y * HEADS + i / (VALUE_DIM / 4u)) * MAX_RANGES;
    let d = i % (VALUE_DIM / 4u);
    var largest = partial_stats[row + begin].x;
    for (var range = begin + 1u; range <= to; range = range + 1u) {
      largest = max(largest, partial_stats[row + range].x);
    }
    var sum = 0.0;
    var total = vec4<f32>();
    for (var range = begin; range <= to; range = range + 1u) {
      let stats = partial_stats[row + range];
      let factor = exp(stats.x - largest);
      sum = fma(stats.y, factor, sum);
      total = fma(partial_values[(row + range) * (VALUE_DIM / 4u) + d], vec4<f32>(factor), total);
    }
    result = total / sum;
  }
  emit(wid.y, i, result, valid, lid);
}
