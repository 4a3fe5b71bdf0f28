// Eight sums over a team at once: lane l gets that of value l / (TEAM / 8), added as team_sum does.
// Values 0..3 are in `low`, 4..7 in `high`. All invocations must call.
var<workgroup> scattered: array<array<vec4<f32>, 2>, WORKGROUP_X>;

fn team_scatter(low: vec4<f32>, high: vec4<f32>, lid: u32) -> f32 {
  scattered[lid][0] = low;
  scattered[lid][1] = high;
  workgroupBarrier();
  let first = lid / TEAM * TEAM;
  let value = lid % TEAM / (TEAM / 8u);
  var v: array<f32, TEAM>;
  for (var i = 0u; i < TEAM; i = i + 1u) {
    v[i] = scattered[first + i][value / 4u][value % 4u];
  }
  for (var distance = TEAM / 2u; distance > 0u; distance = distance / 2u) {
    for (var i = 0u; i < distance; i = i + 1u) {
      v[i] = v[i] + v[i + distance];
    }
  }
  workgroupBarrier();
  return v[0];
}
