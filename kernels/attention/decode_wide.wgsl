// Attention, decode class, for heads of more than 256 elements: as attention/decode.wgsl, but 64
// elements of the keys and KEYS_AT_ONCE values at a time for all heads of the tile, since a lane's share
// of a wide head does not fit in registers.
// Includes: lib/reduce_*, lib/scatter_*, kv/read_*, attention/direct (with out/*) or attention/split.
// Dispatch: x over KV heads and tiles of heads, y over columns, z over ranges.
//! include lib/step.wgsl
//! include kv/pages.wgsl
//! include attention/score.wgsl
//! include attention/decode_heads.wgsl

var<workgroup> weights: array<f32, HEAD_TILE * WORKGROUP_X>;  // [head][key]

// The largest of a head's scores.
fn largest_of(head: u32) -> f32 {
  var largest = LOWEST;
  //! unroll i OCTETS
  largest = max(largest, octet_largest[head * OCTETS + $i]);
  //! end
  return largest;
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
  load_queries(wid.y, head0, heads, lid);
  workgroupBarrier();

  // Beyond the last key any page that the slot has is read, and left out.
  let octet = lid / 8u;
  let key_row = kv_row(slot, min(key0 + octet * 8u, own & ~7u), kv_head) * KEY_STRIDE;
  //! unroll h HEAD_TILE
  //! unroll j 8
  var dot_$h_$j = 0.0;
  //! end
  //! end
  for (var part = 0u; part < KEY_PARTS; part = part + 1u) {
    let key_at = key_row + min((part * 8u + lid % 8u) * 8u, KEY_STRIDE - 8u);
    //! unroll j 8
    let key_$j = eight(key_bits(key_at + $j * KEY_STRIDE));
    //! end
    //! unroll h HEAD_TILE
    let query_$h = q_tile[$h * Q_PITCH + part * 8u + lid % 8u];
    //! unroll j 8
    dot_$h_$j = dot8(query_$h, key_$j, dot_$h_$j);
    //! end
    //! end
  }
  let valid = key0 + lid <= own && key0 + lid >= first;
  //! unroll h HEAD_TILE
  let sum_$h = team_scatter(vec4<f32>(dot_$h_0, dot_$h_1, dot_$h_2, dot_$h_3),
                            vec4<f32>(dot_$h_4, dot_$h_5, dot_$h_6, dot_$h_7), lid);
  let score_$h = select(LOWEST, score(sum_$h), valid);
  let largest_$h = octet_max_f32(score_$h, lid);
  if (lid % 8u == 0u) {
    octet_largest[$h * OCTETS + octet] = largest_$h;
  }
  //! end
  workgroupBarrier();
  //! unroll h HEAD_TILE
  let weight_$h = select(0.0, exp(score_$h - largest_of($h)), valid);
  weights[$h * WORKGROUP_X + lid] = weight_$h;
  let weight_sum_$h = octet_sum_f32(weight_$h, lid);
  if (lid % 8u == 0u) {
    octet_sums[$h * OCTETS + octet] = weight_sum_$h;
  }
  //! end
  workgroupBarrier();

  let value_at = min(lid % VALUE_SLOTS * 8u, VALUE_STRIDE - 8u);
  let lane_key0 = lid / VALUE_SLOTS * LANE_KEYS;
  //! unroll h HEAD_TILE
  var acc_$h = Eight();
  //! end
  for (var i = 0u; i < LANE_KEYS; i = i + KEYS_AT_ONCE) {
    let lane_key = lane_key0 + i;
    let row = kv_row(slot, min(key0 + lane_key, own & ~(KEYS_AT_ONCE - 1u)), kv_head) * VALUE_STRIDE +
              value_at;
    //! unroll j KEYS_AT_ONCE
    let counts_$j = key0 + lane_key + $j <= own && key0 + lane_key + $j >= first;
    let value_$j = eight(select_bits(value_bits(row + $j * VALUE_STRIDE), counts_$j));
    //! unroll h HEAD_TILE
    let p_$h_$j = vec4<f32>(weights[$h * WORKGROUP_X + lane_key + $j]);
    acc_$h.a = fma(p_$h_$j, value_$j.a, acc_$h.a);
    acc_$h.b = fma(p_$h_$j, value_$j.b, acc_$h.b);
    //! end
    //! end
  }
  //! unroll h HEAD_TILE
  value_sums[$h * WORKGROUP_X + lid] = acc_$h;
  //! end
  workgroupBarrier();
  finish_heads(wid.y, head0, heads, wid.z, lid);
}
