// Attention, decode class: a workgroup has one column, one range of KEYS_PER_RANGE absolute positions
// and HEAD_TILE query heads that share a KV head. It walks tiles of WORKGROUP_X keys with an online softmax:
// one invocation a key for the scores, then VALUE_SLOTS vectors of 4 dimensions by WORKGROUP_X / VALUE_SLOTS
// lanes of keys for the values. What a range gives does not depend on the other ranges.
// Includes: kv/read_*, attention/direct (with out/*) or attention/split.
// Dispatch: x over KV heads and tiles of heads, y over columns, z over ranges.
//! include lib/step.wgsl
//! include kv/pages.wgsl
//! include attention/score.wgsl
@group(0) @binding(2) var<storage, read> q: array<f32>;

const Q_VECTORS = KEY_STRIDE / 4u;
const KEY_LANES = WORKGROUP_X / VALUE_SLOTS;
const LOWEST = -3.0e38;

var<workgroup> q_tile: array<vec4<f32>, HEAD_TILE * Q_VECTORS>;
var<workgroup> p_tile: array<f32, HEAD_TILE * WORKGROUP_X>;
var<workgroup> parts: array<f32, HEAD_TILE * 16>;
var<workgroup> tile_max: array<f32, HEAD_TILE>;
var<workgroup> head_max: array<f32, HEAD_TILE>;
var<workgroup> head_sum: array<f32, HEAD_TILE>;
var<workgroup> value_sum: array<vec4<f32>, HEAD_TILE * WORKGROUP_X>;

fn load_queries(column: u32, head0: u32, heads: u32, lid: u32) {
  for (var i = lid; i < HEAD_TILE * Q_VECTORS; i = i + WORKGROUP_X) {
    let h = i / Q_VECTORS;
    let d = (i % Q_VECTORS) * 4u;
    var v = vec4<f32>();
    if (h < heads && d < HEAD_DIM) {  // 4 divides HEAD_DIM
      let at = column * Q_STRIDE + (head0 + h) * HEAD_DIM + d;
      v = vec4<f32>(q[at], q[at + 1u], q[at + 2u], q[at + 3u]);
    }
    q_tile[i] = v;
  }
}

@compute @workgroup_size(WORKGROUP_X)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
  let kv_head = wid.x / HEAD_TILES;
  let head_in_group = (wid.x % HEAD_TILES) * HEAD_TILE;
  let head0 = kv_head * GROUP_HEADS + head_in_group;
  let heads = min(HEAD_TILE, GROUP_HEADS - head_in_group);
  let own = columns[wid.y].y;
  let slot = columns[wid.y].z;
  let first = first_key(own);
  let range0 = wid.z * KEYS_PER_RANGE;
  if (range0 > own || range0 + KEYS_PER_RANGE <= first) {
    return;
  }
  load_queries(wid.y, head0, heads, lid);
  workgroupBarrier();

  let value_slot = lid % VALUE_SLOTS;
  let key_lane = lid / VALUE_SLOTS;
  var largest: array<f32, HEAD_TILE>;
  var sum = 0.0;  // of head lid, in the first HEAD_TILE invocations
  var acc: array<vec4<f32>, HEAD_TILE>;
  for (var h = 0u; h < HEAD_TILE; h = h + 1u) {
    largest[h] = LOWEST;
  }
  for (var key0 = range0; key0 < range0 + KEYS_PER_RANGE; key0 = key0 + WORKGROUP_X) {
    if (key0 > own) {
      break;
    }
    if (key0 + WORKGROUP_X <= first) {
      continue;
    }
    let key = key0 + lid;
    let valid = key <= own && key >= first;
    var dots: array<vec4<f32>, HEAD_TILE>;
    if (valid) {
      let row = kv_row(slot, key, kv_head) * KEY_STRIDE;
      for (var i = 0u; i < KEY_STRIDE / 8u; i = i + 1u) {
        let k = key8(row + i * 8u);
        for (var h = 0u; h < HEAD_TILE; h = h + 1u) {
          let at = h * Q_VECTORS + i * 2u;
          dots[h] = fma(k.b, q_tile[at + 1u], fma(k.a, q_tile[at], dots[h]));
        }
      }
    }
    var scores: array<f32, HEAD_TILE>;
    for (var h = 0u; h < HEAD_TILE; h = h + 1u) {
      let four = dots[h];
      scores[h] = select(LOWEST, score((four.x + four.y) + (four.z + four.w)), valid);
      p_tile[h * WORKGROUP_X + lid] = scores[h];
    }
    workgroupBarrier();
    for (var part = lid; part < HEAD_TILE * 16u; part = part + WORKGROUP_X) {
      let at = (part / 16u) * WORKGROUP_X + (part % 16u) * (WORKGROUP_X / 16u);
      var m = p_tile[at];
      for (var i = 1u; i < WORKGROUP_X / 16u; i = i + 1u) {
        m = max(m, p_tile[at + i]);
      }
      parts[part] = m;
    }
    workgroupBarrier();
    if (lid < HEAD_TILE) {
      var m = parts[lid * 16u];
      for (var i = 1u; i < 16u; i = i + 1u) {
        m = max(m, parts[lid * 16u + i]);
      }
      tile_max[lid] = m;
    }
    workgroupBarrier();
    for (var h = 0u; h < HEAD_TILE; h = h + 1u) {
      let m = max(largest[h], tile_max[h]);
      let correction = exp(largest[h] - m);
      largest[h] = m;
      acc[h] = acc[h] * correction;
      if (lid == h) {
        sum = sum * correction;
      }
      p_tile[h * WORKGROUP_X + lid] = select(0.0, exp(scores[h] - m), valid);
    }
    workgroupBarrier();
    for (var part = lid; part < HEAD_TILE * 16u; part = part + WORKGROUP_X) {
      let at = (part / 16u) * WORKGROUP_X + (part % 16u) * (WORKGROUP_X / 16u);
      var s = p_tile[at];
      for (var i = 1u; i < WORKGROUP_X / 16u; i = i + 1u) {
        s = s + p_tile[at + i];
      }
      parts[part] = s;
    }
    if (value_slot * 4u < VALUE_DIM) {
      let end = min(WORKGROUP_X, own + 1u - key0);
      for (var i = key_lane; i < end; i = i + KEY_LANES) {
        if (key0 + i >= first) {
          let v = value4(kv_row(slot, key0 + i, kv_head) * VALUE_STRIDE + value_slot * 4u);
          for (var h = 0u; h < HEAD_TILE; h = h + 1u) {
            acc[h] = fma(vec4<f32>(p_tile[h * WORKGROUP_X + i]), v, acc[h]);
          }
        }
      }
    }
    workgroupBarrier();
    if (lid < HEAD_TILE) {
      var s = parts[lid * 16u];
      for (var i = 1u; i < 16u; i = i + 1u) {
        s = s + parts[lid * 16u + i];
      }
      sum = sum + s;
    }
  }
  if (lid < HEAD_TILE) {
    head_sum[lid] = sum;
  }
  for (var h = 0u; h < HEAD_TILE; h = h + 1u) {
    value_sum[h * WORKGROUP_X + lid] = acc[h];
    if (lid == h) {
      head_max[h] = largest[h];
    }
  }
  workgroupBarrier();
  // Octets have eight vectors of one head.
  for (var start = 0u; start < HEAD_TILE * VALUE_SLOTS; start = start + WORKGROUP_X) {
    let h = min((start + lid) / VALUE_SLOTS, HEAD_TILE - 1u);
    let slot4 = (start + lid) % VALUE_SLOTS;
    let valid = start + lid < heads * VALUE_SLOTS && slot4 * 4u < VALUE_DIM;
    var total = vec4<f32>();
    if (valid) {
      let at = h * WORKGROUP_X + slot4;
      for (var i = 0u; i < WORKGROUP_X; i = i + VALUE_SLOTS) {
        total = total + value_sum[at + i];
      }
    }
    finish(wid.y, head0 + h, wid.z, slot4, total, head_max[h], head_sum[h], valid, lid);
  }
}
