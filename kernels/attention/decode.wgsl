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

const Q_PITCH = KEY_PARTS * 8u;             // vectors of 8; a part has 64 elements
const LANE_KEYS = WORKGROUP_X / KEY_LANES;  // of a tile
const PAGE_KEYS = min(LANE_KEYS, 16u);      // of them in one page
const SUM_HEADS = min(HEAD_TILE, 2u);       // heads whose values are joined at a time
const LOWEST = -3.0e38;

var<workgroup> q_tile: array<Eight, HEAD_TILE * Q_PITCH>;
var<workgroup> p_tile: array<f32, HEAD_TILE * WORKGROUP_X>;  // [head][key]
var<workgroup> octet_parts: array<f32, HEAD_TILE * OCTETS>;
var<workgroup> head_largest: array<f32, HEAD_TILE>;
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

// The largest of the octets' parts of head `h`.
fn largest_part(h: u32) -> f32 {
  var m = LOWEST;
  //! unroll i OCTETS
  m = max(m, octet_parts[h * OCTETS + $i]);
  //! end
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
  //! unroll h HEAD_TILE
  var largest_$h = LOWEST;
  var sum_$h = 0.0;  // of the octet's keys
  var acc_$h = Eight();
  //! end
  for (var key0 = range0; key0 < range0 + KEYS_PER_RANGE; key0 = key0 + WORKGROUP_X) {
    if (key0 > own) {
      break;
    }
    if (key0 + WORKGROUP_X <= first) {
      continue;
    }
    //! unroll h HEAD_TILE
    //! unroll j 8
    var dot_$h_$j = 0.0;
    //! end
    //! end
    let octet0 = key0 + octet * 8u;  // the octet's keys are in one page
    if (octet0 <= own && octet0 + 8u > first) {
      let row = kv_row(slot, octet0, kv_head) * KEY_STRIDE;
      //! unroll part KEY_PARTS
      if (HEAD_DIM % 64u == 0u || $part * 64u + lid % 8u * 8u < KEY_STRIDE) {
        let i = $part * 8u + lid % 8u;
        //! unroll j 8
        let k_$j = key8(row + $j * KEY_STRIDE + i * 8u);
        //! end
        //! unroll h HEAD_TILE
        let query_$h = q_tile[$h * Q_PITCH + i];
        //! unroll j 8
        dot_$h_$j = dot8(query_$h, k_$j, dot_$h_$j);
        //! end
        //! end
      }
      //! end
    }
    let key = key0 + lid;
    let valid = key <= own && key >= first;
    //! unroll h HEAD_TILE
    let score_$h = select(LOWEST, score(team_scatter(vec4<f32>(dot_$h_0, dot_$h_1, dot_$h_2, dot_$h_3),
                                                     vec4<f32>(dot_$h_4, dot_$h_5, dot_$h_6, dot_$h_7),
                                                     lid)), valid);
    let octet_largest_$h = octet_max_f32(score_$h, lid);
    if (lid % 8u == 0u) {
      octet_parts[$h * OCTETS + octet] = octet_largest_$h;
    }
    //! end
    workgroupBarrier();
    //! unroll h HEAD_TILE
    let m_$h = max(largest_$h, largest_part($h));
    let correction_$h = exp(largest_$h - m_$h);
    largest_$h = m_$h;
    acc_$h.a = acc_$h.a * correction_$h;
    acc_$h.b = acc_$h.b * correction_$h;
    let p_$h = select(0.0, exp(score_$h - m_$h), valid);
    p_tile[$h * WORKGROUP_X + lid] = p_$h;
    sum_$h = fma(sum_$h, correction_$h, octet_sum_f32(p_$h, lid));
    //! end
    workgroupBarrier();
    if (value_slot * 8u < VALUE_DIM) {
      for (var page = 0u; page < LANE_KEYS; page = page + PAGE_KEYS) {
        let lane0 = key_lane * LANE_KEYS + page;
        if (key0 + lane0 <= own && key0 + lane0 + PAGE_KEYS > first) {
          let row = kv_row(slot, key0 + lane0, kv_head) * VALUE_STRIDE + value_slot * 8u;
          for (var i = 0u; i < PAGE_KEYS; i = i + VALUE_BATCH) {
            //! unroll j VALUE_BATCH
            let v_$j = value8(row + (i + $j) * VALUE_STRIDE);
            //! end
            //! unroll j VALUE_BATCH
            if (key0 + lane0 + i + $j <= own && key0 + lane0 + i + $j >= first) {
              //! unroll h HEAD_TILE
              let p_$j_$h = vec4<f32>(p_tile[$h * WORKGROUP_X + lane0 + i + $j]);
              acc_$h.a = fma(p_$j_$h, v_$j.a, acc_$h.a);
              acc_$h.b = fma(p_$j_$h, v_$j.b, acc_$h.b);
              //! end
            }
            //! end
          }
        }
      }
    }
    workgroupBarrier();
  }

  //! unroll h HEAD_TILE
  if (lid % 8u == 0u) {
    octet_parts[$h * OCTETS + octet] = sum_$h;
  }
  if (lid == 0u) {
    head_largest[$h] = largest_$h;
  }
  //! end
  //! unroll h HEAD_TILE
  value_sums[$h % SUM_HEADS * WORKGROUP_X + lid] = acc_$h;
  if ($h % SUM_HEADS == SUM_HEADS - 1u || $h == HEAD_TILE - 1u) {
    workgroupBarrier();
    join_values($h / SUM_HEADS * SUM_HEADS, heads, wid.y, head0, wid.z, lid);
    workgroupBarrier();
  }
  //! end
}

// Adds the lanes of keys of the heads h0.. in `value_sums`. All invocations call.
fn join_values(h0: u32, heads: u32, column: u32, head0: u32, range: u32, lid: u32) {
  // Octets have eight vectors of 4 dimensions of one head.
  for (var start = 0u; start < SUM_HEADS * VALUE_SLOTS * 2u; start = start + WORKGROUP_X) {
    let h = min((start + lid) / (VALUE_SLOTS * 2u), SUM_HEADS - 1u);
    let slot4 = (start + lid) % (VALUE_SLOTS * 2u);
    let valid =
        start + lid < SUM_HEADS * VALUE_SLOTS * 2u && h0 + h < heads && slot4 * 4u < VALUE_DIM;
    var total = vec4<f32>();
    var sum = 0.0;
    var largest = LOWEST;
    if (valid) {
      let at = h * WORKGROUP_X + slot4 / 2u;
      //! unroll i KEY_LANES
      total = total + select(value_sums[at + $i * VALUE_SLOTS].a, value_sums[at + $i * VALUE_SLOTS].b,
                             (slot4 & 1u) == 1u);
      //! end
      //! unroll i OCTETS
      sum = sum + octet_parts[(h0 + h) * OCTETS + $i];
      //! end
      largest = head_largest[h0 + h];
    }
    finish(column, head0 + h0 + h, range, slot4, total, largest, sum, valid, lid);
  }
}
