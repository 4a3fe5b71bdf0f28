// Root mean square norm of a group of GROUP elements: x / sqrt(mean(x^2) + EPS) * factor, where the
// factor is weight + WEIGHT_OFFSET, or 1 without WEIGHT.
// Includes: lib/reduce_*, out/*. Dispatch: x over the groups of a row, y over rows.
//! include lib/step.wgsl
//! include lib/x_f32.wgsl
@group(0) @binding(2) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> norm_weight: array<vec4<f32>>;  // used with WEIGHT

@compute @workgroup_size(WORKGROUP_X)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
  let first = wid.x * (GROUP / 4u);
  let vectors = (GROUP + 3u) / 4u;
  var squares = vec4<f32>();
  for (var i = lid; i < vectors; i = i + WORKGROUP_X) {
    let v = load_x4(wid.y, first + i);
    squares = fma(v, v, squares);
  }
  let sum = workgroup_sum((squares.x + squares.y) + (squares.z + squares.w), lid);
  let factor = 1.0 / sqrt(fma(sum, 1.0 / f32(GROUP), EPS));
  for (var start = 0u; start < vectors; start = start + WORKGROUP_X) {
    let i = start + lid;
    var v = vec4<f32>();
    if (i < vectors) {
      v = load_x4(wid.y, first + i) * factor;
      if (WEIGHT) {
        v = v * (norm_weight[i] + vec4<f32>(WEIGHT_OFFSET));
      }
    }
    emit(wid.y, first + i, v, i < vectors, lid);
  }
}
