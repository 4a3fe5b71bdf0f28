// Attention, decode class, for heads of more than 256 elements: a workgroup has one column, one range of
// WORKGROUP_X absolute positions and HEAD_TILE query heads that share a KV head, and loads each key
// and value once for all of them. Scores as in attention/decode.wgsl, but 64 elements of the keys at a
// time. Values: VALUE_SLOTS vectors of 8 dimensions by lanes of LANE_KEYS neighbouring keys, which
// are added KEYS_AT_ONCE at a time.
// Includes: lib/reduce_*, lib/scatter_*, kv/read_*, attention/direct (with out/*) or attention/split.
// Dispatch: x over KV heads and tiles of heads, y over columns, z over ranges.
//! include lib/step.wgsl
//! include kv/pages.wgsl
//! include attention/score.wgsl
//! include attention/queries.wgsl

var<workgroup> weights: array<vec4<f32>, HEAD_QUADS * WORKGROUP_X>;  // [head / 4][key]

const HALF_TILE = (HEAD_TILE + 1u) / 2u;

// The largest of a head's scores.
fn largest_of(head: u32) -> f32 {
  var largest = LOWEST;
  for (var i = 0u; i < OCTETS; i = i + 1u) {
    largest = max(largest, octet_largest[head * OCTETS + i]);
  }
  return largest;
}

// Adds what the lanes have of the values of heads first, first + 1, ... < end of the tile, which lie
// where the queries were. Octets have eight vectors of 4 dimensions of one head.
fn finish_heads(column: u32, head0: u32, first: u32, end: u32, range: u32, lid: u32) {
  for (var start = 0u; start < HALF_TILE * VALUE_SLOTS * 2u; start = start + WORKGROUP_X) {
    let i = min((start + lid) / (VALUE_SLOTS * 2u), HALF_TILE - 1u);
    let h = first + i;
    let slot4 = (start + lid) % (VALUE_SLOTS * 2u);
    let there =
        h < end && start + lid < HALF_TILE * VALUE_SLOTS * 2u && slot4 * 4u < VALUE_DIM;
    var total = vec4<f32>();
    var sum = 0.0;
    if (there) {
      let at = i * WORKGROUP_X + slot4 / 2u;
      //! unroll i KEY_LANES
      total = total + select(q_tile[at + $i * VALUE_SLOTS].a, q_tile[at + $i * VALUE_SLOTS].b,
                             (slot4 & 1u) == 1u);
      //! end
      for (var octet = 0u; octet < OCTETS; octet = octet + 1u) {
        sum = sum + octet_sums[h * OCTETS + octet];
      }
    }
    finish(column, head0 + h, range, slot4, total, largest_of(min(h, HEAD_TILE - 1u)), sum, there,
           lid);
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
    let k_$j = key_bits(key_at + $j * KEY_STRIDE);
    //! end
    //! unroll j 8
    let key_$j = eight(k_$j);
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
  var key_weights = array<f32, HEAD_QUADS * 4u>();  // of the tile's heads, zeros after them
  //! unroll h HEAD_TILE
  key_weights[$h] = select(0.0, exp(score_$h - largest_of($h)), valid);
  let weight_sum_$h = octet_sum_f32(key_weights[$h], lid);
  if (lid % 8u == 0u) {
    octet_sums[$h * OCTETS + octet] = weight_sum_$h;
  }
  //! end
  //! unroll f HEAD_QUADS
  weights[$f * WORKGROUP_X + lid] = vec4<f32>(key_weights[$f * 4u], key_weights[$f * 4u + 1u],
                                              key_weights[$f * 4u + 2u], key_weights[$f * 4u + 3u]);
  //! end
  workgroupBarrier();

  let value_at = min(lid % VALUE_SLOTS * 8u, VALUE_STRIDE - 8u);
  let lane_key0 = lid / VALUE_SLOTS * LANE_KEYS;
  //! unroll f HEAD_QUADS
  //! unroll h 4
  var acc_$f_$h = Eight();
  //! end
  //! end
  for (var i = 0u; i < LANE_KEYS; i = i + KEYS_AT_ONCE) {
    let lane_key = lane_key0 + i;
    let row = kv_row(slot, min(key0 + lane_key, own & ~(KEYS_AT_ONCE - 1u)), kv_head) * VALUE_STRIDE +
              value_at;
    //! unroll j KEYS_AT_ONCE
    let v_$j = value_bits(row + $j * VALUE_STRIDE);
    //! end
    //! unroll j KEYS_AT_ONCE
    let counts_$j = key0 + lane_key + $j <= own && key0 + lane_key + $j >= first;
    let value_$j = eight(select_bits(v_$j, counts_$j));
    //! unroll f HEAD_QUADS
    let p_$f_$j = weights[$f * WORKGROUP_X + lane_key + $j];
    //! unroll h 4
    acc_$f_$h.a = fma(vec4<f32>(p_$f_$j[$h]), value_$j.a, acc_$f_$h.a);
    acc_$f_$h.b = fma(vec4<f32>(p_$f_$j[$h]), value_$j.b, acc_$f_$h.b);
    //! end
    //! end
    //! end
  }
  // Half of the heads at a time: so many fit where the queries were.
  //! unroll t 2
  workgroupBarrier();
  //! unroll f HEAD_QUADS
  //! unroll h 4
  if ($f * 4u + $h < HEAD_TILE && ($f * 4u + $h) / HALF_TILE == $t) {
    q_tile[($f * 4u + $h) % HALF_TILE * WORKGROUP_X + lid] = acc_$f_$h;
  }
  //! end
  //! end
  workgroupBarrier();
  finish_heads(wid.y, head0, $t * HALF_TILE, heads, wid.z, lid);
  //! end
}
