// Attention, decode class: a workgroup has one column, one range of KEYS_PER_RANGE absolute positions
// and HEAD_TILE query heads that share a KV head. It walks tiles of WORKGROUP_X keys with an online
// softmax. Scores: an octet has 8 keys, a lane 8 elements of each 64 of them, which the octet then
// adds so that lane l has the score of key l. Values: VALUE_SLOTS vectors of 8 dimensions by
// KEY_LANES lanes of neighbouring keys. What a range gives does not depend on the other ranges.
// Includes: lib/reduce_*, lib/scatter_*, kv/read_*, attention/direct (with out/*) or attention/split.
// Dispatch: x over KV heads and tiles of heads, y over columns, z over ranges.
//! include lib/step.wgsl
//! include kv/pages.wgsl
//! include attention/score.wgsl
@group(0) @binding(2) var<storage, read> q: array<f32>;

const OCTETS = WORKGROUP_X / 8u;
const KEY_PARTS = (HEAD_DIM + 63u) / 64u;  // of 64 elements
const Q_PITCH = KEY_PARTS * 8u;            // vectors of 8
const KEY_LANES = WORKGROUP_X / VALUE_SLOTS;
const LANE_KEYS = WORKGROUP_X / KEY_LANES;   // of a tile
const PAGE_KEYS = min(LANE_KEYS, 16u);       // of them in one page
const SUM_HEADS = min(HEAD_TILE, 4u);        // heads whose values are joined at a time
const LOWEST = -3.0e38;

var<workgroup> q_tile: array<Eight, HEAD_TILE * Q_PITCH>;
var<workgroup> p_tile: array<f32, HEAD_TILE * WORKGROUP_X>;  // [head][key]
var<workgroup> octet_parts: array<f32, HEAD_TILE * OCTETS>;
var<workgroup> value_sums: array<Eight, SUM_HEADS * WORKGROUP_X>;

fn query4(at: u32, d: u32) -> vec4<f32> {
  if (d < HEAD_DIM) {  // 4 divides HEAD_DIM
    return vec4<f32>(q[at + d], q[at + d + 1u], q[at + d + 2u], q[at + d + 3u]);
  }
  return vec4<f32>();
}

fn load_queries(column: u32, head0: u32, heads: u32, lid: u32) {
  for (var i = lid; i < HEAD_TILE * Q_PITCH; i = i + WORKGROUP_X) {
    let h = i / Q_PITCH;
    let d = i % Q_PITCH * 8u;
    var v = Eight();
    if (h < heads) {
      let at = column * Q_STRIDE + (head0 + h) * HEAD_DIM;
      v = Eight(query4(at, d), query4(at, d + 4u));
    }
    q_tile[i] = v;
  }
}

fn dot8(x: Eight, y: Eight, sum: f32) -> f32 {
  let s = fma(x.a.w, y.a.w, fma(x.a.z, y.a.z, fma(x.a.y, y.a.y, fma(x.a.x, y.a.x, sum))));
  return fma(x.b.w, y.b.w, fma(x.b.z, y.b.z, fma(x.b.y, y.b.y, fma(x.b.x, y.b.x, s))));
}

// The dot products of the heads with key `key0` + lane of the octet; garbage where the octet's keys
// are not `seen`.
fn load_dots(slot: u32, kv_head: u32, key0: u32, seen: bool, lid: u32) -> array<f32, HEAD_TILE> {
  var dots: array<array<f32, 8>, HEAD_TILE>;
  if (seen) {
    let row = kv_row(slot, key0, kv_head) * KEY_STRIDE;  // the octet's keys are in one page
    for (var part = 0u; part < KEY_PARTS; part = part + 1u) {
      let i = part * 8u + lid % 8u;
      if (HEAD_DIM % 64u == 0u || i * 8u < KEY_STRIDE) {
        var k: array<Eight, 8>;
        for (var j = 0u; j < 8u; j = j + 1u) {
          k[j] = key8(row + j * KEY_STRIDE + i * 8u);
        }
        for (var h = 0u; h < HEAD_TILE; h = h + 1u) {
          let query = q_tile[h * Q_PITCH + i];
          for (var j = 0u; j < 8u; j = j + 1u) {
            dots[h][j] = dot8(query, k[j], dots[h][j]);
          }
        }
      }
    }
  }
  var sums: array<f32, HEAD_TILE>;
  for (var h = 0u; h < HEAD_TILE; h = h + 1u) {
    sums[h] = octet_scatter(dots[h], lid);
  }
  return sums;
}

// The largest of the octets' parts of head `h`.
fn largest_part(h: u32) -> f32 {
  var m = octet_parts[h * OCTETS];
  for (var i = 1u; i < OCTETS; i = i + 1u) {
    m = max(m, octet_parts[h * OCTETS + i]);
  }
  return m;
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

  let octet = lid / 8u;
  let value_slot = lid % VALUE_SLOTS;
  let key_lane = lid / VALUE_SLOTS;
  var largest: array<f32, HEAD_TILE>;
  var sums: array<f32, HEAD_TILE>;  // of the octet's keys
  var acc: array<Eight, HEAD_TILE>;
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
    let octet0 = key0 + octet * 8u;
    let dots = load_dots(slot, kv_head, octet0, octet0 <= own && octet0 + 8u > first, lid);
    let key = key0 + lid;
    let valid = key <= own && key >= first;
    var scores: array<f32, HEAD_TILE>;
    for (var h = 0u; h < HEAD_TILE; h = h + 1u) {
      scores[h] = select(LOWEST, score(dots[h]), valid);
      let m = octet_max_f32(scores[h], lid);
      if (lid % 8u == 0u) {
        octet_parts[h * OCTETS + octet] = m;
      }
    }
    workgroupBarrier();
    for (var h = 0u; h < HEAD_TILE; h = h + 1u) {
      let m = max(largest[h], largest_part(h));
      let correction = exp(largest[h] - m);
      largest[h] = m;
      acc[h].a = acc[h].a * correction;
      acc[h].b = acc[h].b * correction;
      let p = select(0.0, exp(scores[h] - m), valid);
      p_tile[h * WORKGROUP_X + lid] = p;
      sums[h] = fma(sums[h], correction, octet_sum_f32(p, lid));
    }
    workgroupBarrier();
    if (value_slot * 8u < VALUE_DIM) {
      for (var page = 0u; page < LANE_KEYS; page = page + PAGE_KEYS) {
        let lane0 = key_lane * LANE_KEYS + page;
        let begin = max(first, key0 + lane0) - key0;
        let end = min(own + 1u - key0, lane0 + PAGE_KEYS);
        if (begin < end) {
          let row = kv_row(slot, key0 + lane0, kv_head) * VALUE_STRIDE + value_slot * 8u;
          for (var i = begin; i < end; i = i + 1u) {
            let v = value8(row + (i - lane0) * VALUE_STRIDE);
            for (var h = 0u; h < HEAD_TILE; h = h + 1u) {
              let p = vec4<f32>(p_tile[h * WORKGROUP_X + i]);
              acc[h].a = fma(p, v.a, acc[h].a);
              acc[h].b = fma(p, v.b, acc[h].b);
            }
          }
        }
      }
    }
    workgroupBarrier();
  }

  for (var h = 0u; h < HEAD_TILE; h = h + 1u) {
    if (lid % 8u == 0u) {
      octet_parts[h * OCTETS + octet] = sums[h];
    }
  }
  for (var h0 = 0u; h0 < HEAD_TILE; h0 = h0 + SUM_HEADS) {
    workgroupBarrier();
    for (var h = 0u; h < SUM_HEADS; h = h + 1u) {
      if (h0 + h < HEAD_TILE) {
        value_sums[h * WORKGROUP_X + lid] = acc[h0 + h];
      }
    }
    workgroupBarrier();
    // Octets have eight vectors of 4 dimensions of one head.
    for (var start = 0u; start < SUM_HEADS * VALUE_SLOTS * 2u; start = start + WORKGROUP_X) {
      let h = min((start + lid) / (VALUE_SLOTS * 2u), SUM_HEADS - 1u);
      let slot4 = (start + lid) % (VALUE_SLOTS * 2u);
      let valid = start + lid < SUM_HEADS * VALUE_SLOTS * 2u && h0 + h < heads &&
                  slot4 * 4u < VALUE_DIM;
      var total = vec4<f32>();
      var sum = 0.0;
      var m = LOWEST;
      if (valid) {
        for (var i = 0u; i < KEY_LANES; i = i + 1u) {
          let part = value_sums[h * WORKGROUP_X + i * VALUE_SLOTS + slot4 / 2u];
          total = total + select(part.a, part.b, (slot4 & 1u) == 1u);
        }
        for (var i = 0u; i < OCTETS; i = i + 1u) {
          sum = sum + octet_parts[(h0 + h) * OCTETS + i];
        }
        for (var i = 0u; i < HEAD_TILE; i = i + 1u) {
          m = select(m, largest[i], i == h0 + h);
        }
      }
      finish(wid.y, head0 + h0 + h, wid.z, slot4, total, m, sum, valid, lid);
    }
  }
}
