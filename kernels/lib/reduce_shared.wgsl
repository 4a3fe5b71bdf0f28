// Sums and maxima over teams of TEAM neighbouring invocations (a power of two), octets (8) and the
// workgroup (WORKGROUP_X invocations), through workgroup memory. The order of additions is that of
// lib/reduce_subgroup.wgsl. All invocations must call.
var<workgroup> reduce_scratch: array<f32, WORKGROUP_X>;
var<workgroup> octet_scratch: array<u32, WORKGROUP_X>;

fn team_sum(value: f32, lid: u32) -> f32 {
  var sum = value;
  for (var distance = TEAM / 2u; distance > 0u; distance = distance / 2u) {
    reduce_scratch[lid] = sum;
    workgroupBarrier();
    sum = sum + reduce_scratch[lid ^ distance];
    workgroupBarrier();
  }
  return sum;
}

fn octet_max(value: u32, lid: u32) -> u32 {
  octet_scratch[lid] = value;
  workgroupBarrier();
  let first = lid & ~7u;
  var largest = value;
  for (var i = first; i < first + 8u; i = i + 1u) {
    largest = max(largest, octet_scratch[i]);
  }
  workgroupBarrier();
  return largest;
}

fn octet_max_f32(value: f32, lid: u32) -> f32 {
  reduce_scratch[lid] = value;
  workgroupBarrier();
  let first = lid & ~7u;
  var largest = value;
  for (var i = first; i < first + 8u; i = i + 1u) {
    largest = max(largest, reduce_scratch[i]);
  }
  workgroupBarrier();
  return largest;
}

fn octet_sum(value: i32, lid: u32) -> i32 {
  octet_scratch[lid] = bitcast<u32>(value);
  workgroupBarrier();
  let first = lid & ~7u;
  var sum = 0;
  for (var i = first; i < first + 8u; i = i + 1u) {
    sum = sum + bitcast<i32>(octet_scratch[i]);
  }
  workgroupBarrier();
  return sum;
}

fn octet_sum_f32(value: f32, lid: u32) -> f32 {
  var v: array<f32, 8>;
  let first = lid & ~7u;
  reduce_scratch[lid] = value;
  workgroupBarrier();
  for (var i = 0u; i < 8u; i = i + 1u) {
    v[i] = reduce_scratch[first + i];
  }
  workgroupBarrier();
  return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]));
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
