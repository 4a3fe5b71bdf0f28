// Attention, decode class: a workgroup has one column, one range of WORKGROUP_X absolute positions and
// HEAD_TILE query heads that share a KV head. Keys and values are loaded once, then heads are taken
// HEAD_STEP at a time: more make the code longer, which is fetched anew for every layer. Scores: an
// octet has 8 keys, a lane 8 elements of each 64 of them, which the octet then adds so that lane l has
// the score of key l. Values: VALUE_SLOTS vectors of 8 dimensions by KEY_LANES lanes of LANE_KEYS
// neighbouring keys.
// Includes: lib/reduce_*, lib/scatter_*, kv/read_*, attention/direct (with out/*) or attention/split.
// Dispatch: x over KV heads and tiles of heads, y over columns, z over ranges.
//! include lib/step.wgsl
//! include kv/pages.wgsl
//! include attention/score.wgsl
//! include attention/queries.wgsl

var<workgroup> p_tile: array<f32, HEAD_TILE * WORKGROUP_X>;  // [head][key]: scores, then weights
var<workgroup> head_largest: array<f32, HEAD_TILE>;
var<workgroup> value_sums: array<Eight, HEAD_TILE * WORKGROUP_X>;

// Adds what lanes have of each head's values. Octets have eight vectors of 4 dimensions of one head.
fn finish_heads(column: u32, head0: u32, heads: u32, range: u32, lid: u32) {
  for (var start = 0u; start < HEAD_TILE * VALUE_SLOTS * 2u; start = start + WORKGROUP_X) {
    let h = min((start + lid) / (VALUE_SLOTS * 2u), HEAD_TILE - 1u);
    let slot4 = (start + lid) % (VALUE_SLOTS * 2u);
    let there = start + lid < heads * VALUE_SLOTS * 2u && slot4 * 4u < VALUE_DIM;
    var total = vec4<f32>();
    var sum = 0.0;
    if (there) {
      let at = h * WORKGROUP_X + slot4 / 2u;
      //! unroll i KEY_LANES
      total = total + select(value_sums[at + $i * VALUE_SLOTS].a, value_sums[at + $i * VALUE_SLOTS].b,
                             (slot4 & 1u) == 1u);
      //! end
      //! unroll i OCTETS
      sum = sum + octet_sums[h * OCTETS + $i];
      //! end
    }
    finish(column, head0 + h, range, slot4, total, head_largest[h], sum, there, lid);
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
  let key0 = wid.z * WORKGROUP_X;
  if (key0 > own || key0 + WORKGROUP_X <= first) {
    return;
  }
  // Beyond the last key any page that the slot has is read, and left out.
  let octet = lid / 8u;
  let key_row = kv_row(slot, min(key0 + octet * 8u, own & ~7u), kv_head) * KEY_STRIDE;
  //! unroll part KEY_PARTS
  let key_at_$part = min(($part * 8u + lid % 8u) * 8u, KEY_STRIDE - 8u);
  //! unroll j 8
  let k_$part_$j = key_bits(key_row + $j * KEY_STRIDE + key_at_$part);
  //! end
  //! end
  let value_at = min(lid % VALUE_SLOTS * 8u, VALUE_STRIDE - 8u);
  let lane_key0 = lid / VALUE_SLOTS * LANE_KEYS;
  //! unroll page LANE_PAGES
  let value_row_$page =
      kv_row(slot, min(key0 + lane_key0 + $page * PAGE_KEYS, own & ~(PAGE_KEYS - 1u)), kv_head) *
      VALUE_STRIDE + value_at;
  //! unroll j PAGE_KEYS
  let key_$page_$j = key0 + lane_key0 + $page * PAGE_KEYS + $j;
  let v_$page_$j = select_bits(value_bits(value_row_$page + $j * VALUE_STRIDE),
                               key_$page_$j <= own && key_$page_$j >= first);
  //! end
  //! end
  load_queries(wid.y, head0, heads, lid);
  workgroupBarrier();

  let key = key0 + lid;
  let valid = key <= own && key >= first;
  let end = HEAD_TILE + step_info.zero;
  for (var h0 = 0u; h0 < end; h0 = h0 + HEAD_STEP) {
    //! unroll h HEAD_STEP
    //! unroll j 8
    var dot_$h_$j = 0.0;
    //! end
    //! end
    //! unroll part KEY_PARTS
    //! unroll h HEAD_STEP
    let query_$part_$h = q_tile[(h0 + $h) * Q_PITCH + $part * 8u + lid % 8u];
    //! end
    //! unroll j 8
    let key_$part_$j = eight(k_$part_$j);
    //! unroll h HEAD_STEP
    dot_$h_$j = dot8(query_$part_$h, key_$part_$j, dot_$h_$j);
    //! end
    //! end
    //! end
    //! unroll h HEAD_STEP
    let sum_$h = team_scatter(vec4<f32>(dot_$h_0, dot_$h_1, dot_$h_2, dot_$h_3),
                              vec4<f32>(dot_$h_4, dot_$h_5, dot_$h_6, dot_$h_7), lid);
    let s_$h = select(LOWEST, score(sum_$h), valid);
    p_tile[(h0 + $h) * WORKGROUP_X + lid] = s_$h;
    let largest_$h = octet_max_f32(s_$h, lid);
    if (lid % 8u == 0u) {
      octet_largest[(h0 + $h) * OCTETS + octet] = largest_$h;
    }
    //! end
  }
  workgroupBarrier();
  for (var h = 0u; h < end; h = h + 1u) {
    var largest = LOWEST;
    for (var i = lid % 8u; i < OCTETS; i = i + 8u) {
      largest = max(largest, octet_largest[h * OCTETS + i]);
    }
    largest = octet_max_f32(largest, lid);
    let p = select(0.0, exp(p_tile[h * WORKGROUP_X + lid] - largest), valid);
    p_tile[h * WORKGROUP_X + lid] = p;
    let sum = octet_sum_f32(p, lid);
    if (lid % 8u == 0u) {
      octet_sums[h * OCTETS + octet] = sum;
    }
    if (lid == 0u) {
      head_largest[h] = largest;
    }
  }
  workgroupBarrier();
  for (var h0 = 0u; h0 < end; h0 = h0 + HEAD_STEP) {
    //! unroll h HEAD_STEP
    var acc_$h = Eight();
    //! end
    //! unroll page LANE_PAGES
    //! unroll j PAGE_KEYS
    let value_$page_$j = eight(v_$page_$j);
    //! unroll h HEAD_STEP
    let p_$h_$page_$j = p_tile[(h0 + $h) * WORKGROUP_X + lane_key0 + $page * PAGE_KEYS + $j];
    acc_$h.a = fma(vec4<f32>(p_$h_$page_$j), value_$page_$j.a, acc_$h.a);
    acc_$h.b = fma(vec4<f32>(p_$h_$page_$j), value_$page_$j.b, acc_$h.b);
    //! end
    //! end
    //! end
    //! unroll h HEAD_STEP
    value_sums[(h0 + $h) * WORKGROUP_X + lid] = acc_$h;
    //! end
  }
  workgroupBarrier();
  finish_heads(wid.y, head0, heads, wid.z, lid);
}
