// Latent attention: q = [q_latent | rotated q_rope] of each head to out, the latent and the rotated
// k_rope to the keys of the only KV head. A workgroup has one query head, the last one the cache's row.
// Includes: kv/write_*. Dispatch: x over heads and one more, y over columns.
//! include lib/step.wgsl
//! include lib/rotate.wgsl
//! include kv/pages.wgsl
@group(0) @binding(1) var<storage, read_write> out: array<f32>;
@group(0) @binding(2) var<storage, read> q_latent: array<f32>;
@group(0) @binding(7) var<storage, read> q_rope: array<f32>;
@group(0) @binding(8) var<storage, read> latent: array<f32>;
@group(0) @binding(9) var<storage, read> k_rope: array<f32>;

var<workgroup> row: array<f32, HEAD_DIM>;

@compute @workgroup_size(WORKGROUP_X)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
  let is_q = wid.x < HEADS;
  let column = columns[wid.y];
  for (var i = lid; i < VALUE_DIM; i = i + WORKGROUP_X) {
    if (is_q) {
      row[i] = q_latent[wid.y * Q_LATENT_STRIDE + wid.x * VALUE_DIM + i];
    } else {
      row[i] = latent[wid.y * LATENT_STRIDE + i];
    }
  }
  for (var pair = lid; pair < ROTARY_DIM / 2u; pair = pair + WORKGROUP_X) {
    let at = pair_elements(pair);
    var v = vec2<f32>();
    if (is_q) {
      let base = wid.y * Q_ROPE_STRIDE + wid.x * ROTARY_DIM;
      v = vec2<f32>(q_rope[base + at.x], q_rope[base + at.y]);
    } else {
      let base = wid.y * K_ROPE_STRIDE;
      v = vec2<f32>(k_rope[base + at.x], k_rope[base + at.y]);
    }
    v = rotated(v.x, v.y, pair, column.y);
    row[VALUE_DIM + at.x] = v.x;
    row[VALUE_DIM + at.y] = v.y;
  }
  workgroupBarrier();
  if (is_q) {
    for (var i = lid; i < HEAD_DIM; i = i + WORKGROUP_X) {
      out[wid.y * OUT_STRIDE + wid.x * HEAD_DIM + i] = row[i];
    }
    return;
  }
  let key = kv_row(column.z, column.y, 0u) * KEY_STRIDE;
  for (var i = lid * 2u; i < HEAD_DIM; i = i + WORKGROUP_X * 2u) {
    put_key(key + i, row[i], row[i + 1u]);
  }
}
