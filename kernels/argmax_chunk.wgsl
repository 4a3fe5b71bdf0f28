// The largest logit of each chunk of CHUNK elements of a row: its ordered bits, index and whether all
// were finite. Dispatch: x over chunks, y over rows.
//! include lib/step.wgsl
@group(0) @binding(1) var<storage, read_write> out: array<vec4<u32>>;  // [row][chunk]
@group(0) @binding(2) var<storage, read> logits: array<u32>;           // bits of f32

var<workgroup> best: array<vec3<u32>, WORKGROUP_X>;

// Larger floats give larger numbers; -0 and +0 the same.
fn ordered(bits: u32) -> u32 {
  if ((bits & 0x7fffffffu) == 0u) {
    return 0x80000000u;
  }
  return select(bits | 0x80000000u, ~bits, bits >= 0x80000000u);
}

@compute @workgroup_size(WORKGROUP_X)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
  let start = wid.x * CHUNK;
  let end = min(start + CHUNK, WIDTH);
  var mine = vec3<u32>(0u, 0xffffffffu, 0u);  // key, index, not finite
  for (var i = start + lid; i < end; i = i + WORKGROUP_X) {
    let bits = logits[wid.y * X_STRIDE + i];
    let key = ordered(bits);
    if (key > mine.x) {
      mine.x = key;
      mine.y = i;
    }
    if ((bits & 0x7f800000u) == 0x7f800000u) {
      mine.z = 1u;
    }
  }
  best[lid] = mine;
  for (var distance = WORKGROUP_X / 2u; distance > 0u; distance = distance / 2u) {
    workgroupBarrier();
    if (lid < distance) {
      let a = best[lid];
      let b = best[lid + distance];
      let take_b = b.x > a.x || (b.x == a.x && b.y < a.y);
      best[lid] = vec3<u32>(select(a.xy, b.xy, take_b), a.z | b.z);
    }
  }
  if (lid == 0u) {
    out[wid.y * CHUNKS + wid.x] = vec4<u32>(best[0], 0u);
  }
}
