// Norm of a group of GROUP elements: (x - mean) * factor * (weight + WEIGHT_OFFSET) + bias, where the
// mean is 0 without LAYER and factor is 1 / sqrt(mean((x - mean)^2) + EPS). Weights and biases of a
// group lie WEIGHT_STRIDE4 vectors behind those of the group before.
// Includes: lib/reduce_*, out/*. Dispatch: x over the groups of a row, y over rows.
//! include lib/step.wgsl
//! include lib/x_f32.wgsl
@group(0) @binding(2) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> norm_weight: array<vec4<f32>>;  // used with WEIGHT
@group(0) @binding(4) var<storage, read> norm_bias: array<vec4<f32>>;    // used with BIAS

const INVERSE = 1.0 / f32(GROUP);

fn sum_of(v: vec4<f32>, lid: u32) -> f32 {
  return workgroup_sum((v.x + v.y) + (v.z + v.w), lid);
}

// Vector `i` of a row minus the mean; zero beyond COLS. `sum` is that of the group.
fn centered(row: u32, i: u32, sum: f32) -> vec4<f32> {
  let v = load_x4(row, i);
  if (!LAYER) {
    return v;
  }
  let difference = fma(vec4<f32>(sum), vec4<f32>(-INVERSE), v);
  if (COLS % 4u == 0u) {
    return difference;
  }
  let inside = vec4<u32>(i * 4u) + vec4<u32>(0u, 1u, 2u, 3u) < vec4<u32>(COLS);
  return select(vec4<f32>(), difference, inside);
}

@compute @workgroup_size(WORKGROUP_X)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
  let first = wid.x * (GROUP / 4u);
  let vectors = (GROUP + 3u) / 4u;
  var sum = 0.0;
  if (LAYER) {
    var sums = vec4<f32>();
    for (var i = lid; i < vectors; i = i + WORKGROUP_X) {
      sums = sums + load_x4(wid.y, first + i);
    }
    sum = sum_of(sums, lid);
  }
  var squares = vec4<f32>();
  for (var i = lid; i < vectors; i = i + WORKGROUP_X) {
    let v = centered(wid.y, first + i, sum);
    squares = fma(v, v, squares);
  }
  let factor = 1.0 / sqrt(fma(sum_of(squares, lid), INVERSE, EPS));
  for (var start = 0u; start < vectors; start = start + WORKGROUP_X) {
    let i = start + lid;
    var v = vec4<f32>();
    if (i < vectors) {
      v = centered(wid.y, first + i, sum) * factor;
      var weight = vec4<f32>(1.0);
      if (WEIGHT) {
        weight = norm_weight[wid.x * WEIGHT_STRIDE4 + i] + vec4<f32>(WEIGHT_OFFSET);
      }
      if (BIAS) {
        v = fma(v, weight, norm_bias[wid.x * WEIGHT_STRIDE4 + i]);
      } else {
        v = v * weight;
      }
    }
    emit(wid.y, first + i, v, i < vectors, lid);
  }
}
