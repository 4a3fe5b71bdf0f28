// The best logit of each chunk of CHUNK elements of a row: its key, index and whether all were
// finite. Dispatch: x over chunks, y over rows.
//! include lib/step.wgsl
//! include sample/best.wgsl
@group(0) @binding(1) var<storage, read_write> chunk_bests: array<vec4<u32>>;  // [row][chunk]
@group(0) @binding(2) var<storage, read> logits: array<u32>;                   // bits of f32

@compute @workgroup_size(WORKGROUP_X)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
  let start = wid.x * CHUNK;
  let end = min(start + CHUNK, params.width);
  var mine = NONE;
  for (var i = start + lid; i < end; i = i + WORKGROUP_X) {
    let bits = logits[wid.y * params.stride + i];
    let not_finite = select(0u, 1u, (bits & 0x7f800000u) == 0x7f800000u);
    mine = better(mine, vec3<u32>(key_of(bits), i, not_finite));
  }
  let best = best_of_all(mine, lid);
  if (lid == 0u) {
    chunk_bests[wid.y * params.chunks + wid.x] = vec4<u32>(best, 0u);
  }
}
