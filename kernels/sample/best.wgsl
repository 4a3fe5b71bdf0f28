// The better of two logits, given as key, index and whether something was not finite.
//! include sample/row.wgsl

const NONE = vec3<u32>(0xffffffffu, 0xffffffffu, 0u);

var<workgroup> bests: array<vec3<u32>, WORKGROUP_X>;

fn better(a: vec3<u32>, b: vec3<u32>) -> vec3<u32> {
  let take_b = b.x < a.x || (b.x == a.x && b.y < a.y);
  return vec3<u32>(select(a.xy, b.xy, take_b), a.z | b.z);
}

// In invocation 0. All invocations must call.
fn best_of_all(mine: vec3<u32>, lid: u32) -> vec3<u32> {
  bests[lid] = mine;
  for (var distance = WORKGROUP_X / 2u; distance > 0u; distance = distance / 2u) {
    workgroupBarrier();
    if (lid < distance) {
      bests[lid] = better(bests[lid], bests[lid + distance]);
    }
  }
  return bests[lid];
}
