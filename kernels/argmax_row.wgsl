// The arg-max of each row from those of its chunks: the token goes to the results and becomes the
// last token of the column's slot. Dispatch: y over rows.
//! include lib/step.wgsl
@group(0) @binding(1) var<storage, read_write> results: array<vec2<u32>>;  // token, finite; by logit row
@group(0) @binding(2) var<storage, read> chunks: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> logit_columns: array<u32>;
@group(0) @binding(4) var<storage, read> columns: array<vec4<u32>>;  // token, position, slot
@group(0) @binding(5) var<storage, read_write> last_tokens: array<u32>;

var<workgroup> best: array<vec3<u32>, WORKGROUP_X>;

@compute @workgroup_size(WORKGROUP_X)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
  var mine = vec3<u32>(0u, 0xffffffffu, 0u);
  for (var i = lid; i < CHUNKS; i = i + WORKGROUP_X) {
    let chunk = chunks[wid.y * CHUNKS + i];
    if (chunk.x > mine.x || (chunk.x == mine.x && chunk.y < mine.y)) {
      mine.x = chunk.x;
      mine.y = chunk.y;
    }
    mine.z = mine.z | chunk.z;
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
    let row = step_info.first_logit + wid.y;
    let token = min(best[0].y, WIDTH - 1u);
    results[row] = vec2<u32>(token, 1u - best[0].z);
    // Rows of one slot are neighbours; the last of them counts.
    let slot = columns[logit_columns[row]].z;
    let next = min(wid.y + 1u, step_info.logit_rows - 1u);
    if (next == wid.y || columns[logit_columns[step_info.first_logit + next]].z != slot) {
      last_tokens[slot] = token;
    }
  }
}
