// Lane l of an octet gets the sum of its lanes' v[l], added as octet_sum_f32 does. All invocations
// must call.
var<workgroup> scattered: array<array<f32, 8>, WORKGROUP_X>;

fn octet_scatter(v: array<f32, 8>, lid: u32) -> f32 {
  scattered[lid] = v;
  workgroupBarrier();
  let first = lid & ~7u;
  let l = lid & 7u;
  let sum = ((scattered[first][l] + scattered[first + 4u][l]) +
             (scattered[first + 2u][l] + scattered[first + 6u][l])) +
            ((scattered[first + 1u][l] + scattered[first + 5u][l]) +
             (scattered[first + 3u][l] + scattered[first + 7u][l]));
  workgroupBarrier();
  return sum;
}
