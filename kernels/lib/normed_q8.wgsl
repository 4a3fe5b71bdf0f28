// For a root mean square norm that follows: q8 rows of x * (weight + NORM_OFFSET) with the sums of
// squares of x. The factor 1 / RMS is left to the reader (X_RMS).
//! include lib/q8_block.wgsl
@group(0) @binding(7) var<storage, read> norm_weight: array<f32>;  // used with NORM_WEIGHT
@group(0) @binding(8) var<storage, read_write> normed: array<u32>;

// x is the elements i..i + 3 of a row; all invocations call, whole octets with valid = false where
// there is no block.
fn emit_normed(row: u32, i: u32, x: vec4<f32>, valid: bool, lid: u32) {
  var y = x;
  if (NORM_WEIGHT && valid) {
    y = x * (vec4<f32>(norm_weight[i], norm_weight[i + 1u], norm_weight[i + 2u],
                       norm_weight[i + 3u]) + vec4<f32>(NORM_OFFSET));
  }
  let square = octet_sum_f32(fma(x.x, x.x, x.y * x.y) + fma(x.z, x.z, x.w * x.w), lid);
  let q = q8_block(y, lid);
  if (valid) {
    let word = row * NORMED_STRIDE;
    normed[word + q8_word(i / 4u, NORM_WIDTH)] = q.quants;
    if (i % 32u == 0u) {
      let pair = word + NORM_WIDTH / 4u + i / 16u;
      normed[pair] = bitcast<u32>(q.d);
      normed[pair + 1u] = bitcast<u32>(q.sum);
      normed[word + NORM_WIDTH / 4u + NORM_WIDTH / 16u + i / 32u] = bitcast<u32>(square);
    }
  }
}
