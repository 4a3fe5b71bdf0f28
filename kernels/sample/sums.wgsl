// 64-bit sums as (low, high) words, and running sums over a workgroup.

fn add64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let low = a.x + b.x;
  return vec2<u32>(low, a.y + b.y + select(0u, 1u, low < a.x));
}

fn subtract64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  return vec2<u32>(a.x - b.x, a.y - b.y - select(0u, 1u, a.x < b.x));
}

fn less64(a: vec2<u32>, b: vec2<u32>) -> bool {
  return a.y < b.y || (a.y == b.y && a.x < b.x);
}

fn multiply(a: u32, b: u32) -> vec2<u32> {
  let low = (a & 0xffffu) * (b & 0xffffu);
  let middle = (a >> 16u) * (b & 0xffffu) + (low >> 16u);
  let other = (a & 0xffffu) * (b >> 16u) + (middle & 0xffffu);
  return vec2<u32>(a * b, (a >> 16u) * (b >> 16u) + (middle >> 16u) + (other >> 16u));
}

// floor(total * share / 2^32)
fn scaled64(total: vec2<u32>, share: u32) -> vec2<u32> {
  return add64(multiply(total.y, share), vec2<u32>(multiply(total.x, share).y, 0u));
}

// The same rounded up, but at least 1.
fn share_of(total: vec2<u32>, share: u32) -> vec2<u32> {
  let whole = scaled64(total, share);
  let sum = add64(whole, vec2<u32>(select(1u, 0u, total.x * share == 0u), 0u));
  return select(sum, vec2<u32>(1u, 0u), all(sum == vec2<u32>()));
}

// A count (x) and a mass (y, z).
fn add_counted(a: vec3<u32>, b: vec3<u32>) -> vec3<u32> {
  return vec3<u32>(a.x + b.x, add64(a.yz, b.yz));
}

// Of groups of 16 invocations, and what the others need: WORKGROUP_X is 256.
var<workgroup> values: array<vec3<u32>, 256>;
var<workgroup> group_sums: array<vec3<u32>, 16>;

struct RunningSum {
  here: vec3<u32>,  // of the invocations 0..lid
  all: vec3<u32>,
}

// All invocations must call.
fn running_sum(value: vec3<u32>, lid: u32) -> RunningSum {
  values[lid] = value;
  workgroupBarrier();
  var here = value;
  for (var i = lid & ~15u; i < lid; i = i + 1u) {
    here = add_counted(here, values[i]);
  }
  if ((lid & 15u) == 15u) {
    group_sums[lid / 16u] = here;
  }
  workgroupBarrier();
  var all = vec3<u32>();
  for (var i = 0u; i < 16u; i = i + 1u) {
    if (i == lid / 16u) {
      here = add_counted(here, all);
    }
    all = add_counted(all, group_sums[i]);
  }
  return RunningSum(here, all);
}
