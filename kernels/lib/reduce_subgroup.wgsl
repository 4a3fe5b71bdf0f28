// Sums and maxima over teams of TEAM neighbouring invocations (at most a subgroup), octets (8) and
// the workgroup (WORKGROUP_X invocations), by shuffles. The order of additions is that of
// lib/reduce_shared.wgsl. All invocations must call.
var<workgroup> reduce_scratch: array<f32, WORKGROUP_X / TEAM>;

fn team_sum(value: f32, lid: u32) -> f32 {
  var sum = value;
  for (var distance = TEAM / 2u; distance > 0u; distance = distance / 2u) {
    sum = sum + subgroupShuffleXor(sum, distance);
  }
  return sum;
}

fn octet_max(value: u32, lid: u32) -> u32 {
  var largest = max(value, subgroupShuffleXor(value, 1u));
  largest = max(largest, subgroupShuffleXor(largest, 2u));
  return max(largest, subgroupShuffleXor(largest, 4u));
}

fn octet_max_f32(value: f32, lid: u32) -> f32 {
  var largest = max(value, subgroupShuffleXor(value, 1u));
  largest = max(largest, subgroupShuffleXor(largest, 2u));
  return max(largest, subgroupShuffleXor(largest, 4u));
}

fn octet_sum(value: i32, lid: u32) -> i32 {
  var sum = value + subgroupShuffleXor(value, 1u);
  sum = sum + subgroupShuffleXor(sum, 2u);
  return sum + subgroupShuffleXor(sum, 4u);
}

fn octet_sum_f32(value: f32, lid: u32) -> f32 {
  var sum = value + subgroupShuffleXor(value, 4u);
  sum = sum + subgroupShuffleXor(sum, 2u);
  return sum + subgroupShuffleXor(sum, 1u);
}

fn workgroup_sum(value: f32, lid: u32) -> f32 {
  let team = team_sum(value, lid);
  if (lid % TEAM == 0u) {
    reduce_scratch[lid / TEAM] = team;
  }
  workgroupBarrier();
  var sum = 0.0;
  for (var i = 0u; i < WORKGROUP_X / TEAM; i = i + 1u) {
    sum = sum + reduce_scratch[i];
  }
  workgroupBarrier();
  return sum;
}
