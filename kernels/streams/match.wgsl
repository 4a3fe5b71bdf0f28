// The other streams with the root mean square of the first, side by side, or with MEAN the mean of the
// first and these. Includes: lib/reduce_*. Dispatch: y over rows, each a workgroup.
//! include lib/step.wgsl
//! include lib/nan.wgsl
@group(0) @binding(1) var<storage, read_write> out: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> first: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> rest: array<vec4<f32>>;

const INVERSE = 1.0 / f32(WIDTH4 * 4u);

fn mean_square(sums: vec4<f32>, lid: u32) -> f32 {
  return workgroup_sum((sums.x + sums.y) + (sums.z + sums.w), lid) * INVERSE;
}

@compute @workgroup_size(WORKGROUP_X)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
  let row = wid.y * WIDTH4;
  let rest_row = wid.y * WIDTH4 * OTHERS;
  var sums = vec4<f32>();
  for (var i = lid; i < WIDTH4; i = i + WORKGROUP_X) {
    let v = first[row + i];
    sums = fma(v, v, sums);
  }
  let own = sqrt(mean_square(sums, lid));
  //! unroll p OTHERS
  var sums_$p = vec4<f32>();
  for (var i = lid; i < WIDTH4; i = i + WORKGROUP_X) {
    let v = rest[rest_row + $p * WIDTH4 + i];
    sums_$p = fma(v, v, sums_$p);
  }
  let square_$p = mean_square(sums_$p, lid);
  let factor_$p = own / sqrt(select(max(square_$p, FLOOR), square_$p, is_nan(square_$p)));
  //! end
  for (var i = lid; i < WIDTH4; i = i + WORKGROUP_X) {
    var mean = first[row + i];
    //! unroll p OTHERS
    let matched_$p = rest[rest_row + $p * WIDTH4 + i] * factor_$p;
    mean = mean + matched_$p;
    if (!MEAN) {
      out[rest_row + $p * WIDTH4 + i] = matched_$p;
    }
    //! end
    if (MEAN) {
      out[row + i] = mean * (1.0 / f32(STREAMS));
    }
  }
}
