// Of all streams q: s_q + sum over p of coefs[q * STREAMS + p] * s_p. Dispatch: x over vectors of 4 of a
// stream, y over rows.
//! include lib/step.wgsl
@group(0) @binding(1) var<storage, read_write> out: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> out_rest: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> first: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> rest: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read> coefs: array<f32>;

@compute @workgroup_size(WORKGROUP_X)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
  let i = wid.x * WORKGROUP_X + lid;
  if (i >= WIDTH4) {
    return;
  }
  let at = wid.y * COEFS_STRIDE;
  let row = wid.y * WIDTH4 + i;
  let rest_row = wid.y * WIDTH4 * OTHERS + i;
  let s = first[row];
  var sum = fma(vec4<f32>(coefs[at]), s, s);
  //! unroll p OTHERS
  let s_$p = rest[rest_row + $p * WIDTH4];
  sum = fma(vec4<f32>(coefs[at + 1u + $p]), s_$p, sum);
  //! end
  out[row] = sum;
  //! unroll q OTHERS
  var sum_$q = fma(vec4<f32>(coefs[at + (1u + $q) * STREAMS]), s, s_$q);
  //! unroll p OTHERS
  sum_$q = fma(vec4<f32>(coefs[at + (1u + $q) * STREAMS + 1u + $p]), s_$p, sum_$q);
  //! end
  out_rest[rest_row + $q * WIDTH4] = sum_$q;
  //! end
}
