// Attention, prefill class, on cooperative matrices of 16 x 16 halves: a workgroup has HEAD_TILE query
// heads of one KV head and a tile of up to 32 columns of one slot; each subgroup of 32 has 16 columns
// of a head. It walks tiles of 32 absolute positions twice: for the largest score of each row, then
// for exp(score - largest) and the weighted sum of the values, so that nothing is rescaled. Keys that
// a row does not see add zeros: its bits do not depend on the other rows.
// Includes: kv/read_*, out/*. Dispatch: x over tiles of heads, y over tiles of columns.
//! include attention/matrix_tile.wgsl

const KEY_PITCH = HEAD_DIM / 4u + 2u;      // vectors of a row, and two against bank conflicts
const VALUE_PITCH = VALUE_DIM / 4u + 2u;
const VALUES_AT = KEYS * KEY_PITCH;
const ROWS = WORKGROUP_X / 2u;  // of queries
const Q_PITCH = 6u;

// Keys and values [key][dimension / 4]; queries at first.
var<workgroup> kv_tile: array<vec4<f16>, max(VALUES_AT + KEYS * VALUE_PITCH, ROWS * Q_PITCH)>;
var<workgroup> s_tile: array<f32, ROWS * S_PITCH>;        // [row][key]; rows of subgroups in turn
var<workgroup> p_tile: array<vec4<f16>, ROWS * P_PITCH>;  // [row][key / 4]

// Dimensions 16 chunk.. of the queries of all heads: [head][column][dimension / 4].
fn load_queries(column0: u32, count: u32, head0: u32, chunk: u32, lid: u32) {
  for (var i = lid; i < ROWS * 4u; i = i + WORKGROUP_X) {
    let row = i / 4u;
    let at = (column0 + min(row % 32u, count - 1u)) * Q_STRIDE + (head0 + row / 32u) * HEAD_DIM +
             chunk * 16u + i % 4u * 4u;
    kv_tile[row * Q_PITCH + i % 4u] =
        to_halves(vec4<f32>(q[at], q[at + 1u], q[at + 2u], q[at + 3u]));
  }
}

fn load_values(slot: u32, kv_head: u32, key: u32, d: u32) -> EightBits {
  return value_bits(kv_row(slot, key, kv_head) * VALUE_STRIDE + d * 8u);
}

@compute @workgroup_size(WORKGROUP_X)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
  let column0 = tiles[wid.y].x;
  let count = tiles[wid.y].y;
  let position0 = columns[column0].y;
  let slot = columns[column0].z;
  let subgroup = lid / 32u;
  let head = wid.x * HEAD_TILE + subgroup / 2u;
  let kv_head = wid.x * HEAD_TILE / GROUP_HEADS;
  let row0 = subgroup % 2u * 16u;     // of the subgroup, in the tile of columns
  let row = lid % 32u / 2u;           // of the invocation, in the subgroup
  let keys_at = lid % 2u * 16u;       // the invocation's keys of a tile
  let own = position0 + row0 + row;
  let begin = first_key(own);
  let seen = vec2<u32>(first_key(position0), position0 + count);
  let s_at = subgroup * 16u * S_PITCH;
  let p_at = subgroup * 16u * P_PITCH;
  //! unroll d KEY_TILES
  load_queries(column0, count, wid.x * HEAD_TILE, $d, lid);
  workgroupBarrier();
  let q$d = coopLoadT<coop_mat16x16<f16, A>>(&kv_tile[subgroup * 16u * Q_PITCH], Q_PITCH);
  workgroupBarrier();
  //! end
  //! unroll v VALUE_TILES
  var o$v = coop_mat16x16<f32, C>();
  //! end
  var largest = LOWEST;
  var sum = 0.0;
  // Invocations copy eight elements at a time: the keys of the next tile are loaded while a tile is
  // multiplied, the values of a tile while its scores are made.
  let first_tile = (seen.x / KEYS) * KEYS;
  //! unroll i KEY_COPIES
  let key_row_$i = (lid + $i * WORKGROUP_X) / (HEAD_DIM / 8u);
  let key_d_$i = (lid + $i * WORKGROUP_X) % (HEAD_DIM / 8u);
  var key_bits_$i =
      load_keys(slot, kv_head, clamp(first_tile + key_row_$i, seen.x, seen.y - 1u), key_d_$i);
  //! end
  for (var pass_index = 0u; pass_index < 2u; pass_index = pass_index + 1u) {
    for (var key0 = first_tile; key0 < seen.y; key0 = key0 + KEYS) {
      //! unroll i KEY_COPIES
      if (key_row_$i < KEYS) {
        let key = key0 + key_row_$i;
        put8(key_row_$i * KEY_PITCH + key_d_$i * 2u, key_bits_$i, key >= seen.x && key < seen.y);
      }
      //! end
      let next = select(first_tile, key0 + KEYS, key0 + KEYS < seen.y);
      workgroupBarrier();
      //! unroll i KEY_COPIES
      key_bits_$i =
          load_keys(slot, kv_head, clamp(next + key_row_$i, seen.x, seen.y - 1u), key_d_$i);
      //! end
      //! unroll i VALUE_COPIES
      let value_row_$i = (lid + $i * WORKGROUP_X) / (VALUE_DIM / 8u);
      let value_d_$i = (lid + $i * WORKGROUP_X) % (VALUE_DIM / 8u);
      var value_bits_$i = EightBits();
      if (pass_index == 1u) {
        value_bits_$i =
            load_values(slot, kv_head, clamp(key0 + value_row_$i, seen.x, seen.y - 1u), value_d_$i);
      }
      //! end
      for (var half = 0u; half < 2u; half = half + 1u) {
        let k_at = half * 16u * KEY_PITCH;
        var s = coop_mat16x16<f32, C>();
        //! unroll d KEY_TILES
        s = coopMultiplyAdd(
            q$d, coopLoad<coop_mat16x16<f16, B>>(&kv_tile[k_at + $d * 4u], KEY_PITCH), s);
        //! end
        coopStoreT(s, &s_tile[s_at + half * 16u], S_PITCH);
      }
      workgroupBarrier();
      for (var i = 0u; i < 4u; i = i + 1u) {
        let at = s_at + row * S_PITCH + keys_at + i * 4u;
        let keys4 = vec4<u32>(key0 + keys_at + i * 4u) + vec4<u32>(0u, 1u, 2u, 3u);
        let valid = (keys4 <= vec4<u32>(own)) & (keys4 >= vec4<u32>(begin)) &
                    vec4<bool>(row0 + row < count);
        let scores = vec4<f32>(score(s_tile[at]), score(s_tile[at + 1u]), score(s_tile[at + 2u]),
                               score(s_tile[at + 3u]));
        if (pass_index == 0u) {
          let kept = select(vec4<f32>(LOWEST), scores, valid);
          largest = max(largest, max(max(kept.x, kept.y), max(kept.z, kept.w)));
        } else {
          let p = vec4<f16>(select(vec4<f32>(), exp(scores - vec4<f32>(largest)), valid));
          sum = sum + ((f32(p.x) + f32(p.y)) + (f32(p.z) + f32(p.w)));
          p_tile[p_at + row * P_PITCH + keys_at / 4u + i] = p;
        }
      }
      if (pass_index == 1u) {
        //! unroll i VALUE_COPIES
        if (value_row_$i < KEYS) {
          let key = key0 + value_row_$i;
          put8(VALUES_AT + value_row_$i * VALUE_PITCH + value_d_$i * 2u, value_bits_$i,
               key >= seen.x && key < seen.y);
        }
        //! end
      }
      workgroupBarrier();
      // Only in the second pass. Front ends take an `if` of a variable for divergent.
      for (var once = 0u; once < pass_index; once = once + 1u) {
        for (var half = 0u; half < 2u; half = half + 1u) {
          let p = coopLoadT<coop_mat16x16<f16, A>>(&p_tile[p_at + half * 4u], P_PITCH);
          let v_at = VALUES_AT + half * 16u * VALUE_PITCH;
          //! unroll v VALUE_TILES
          o$v = coopMultiplyAdd(
              p, coopLoadT<coop_mat16x16<f16, B>>(&kv_tile[v_at + $v * 4u], VALUE_PITCH), o$v);
          //! end
        }
        workgroupBarrier();
      }
    }
    largest = max(largest, subgroupShuffleXor(largest, 1u));
  }
  let scale = 1.0 / with_sink(sum + subgroupShuffleXor(sum, 1u), largest, head);
  let valid_row = row0 + row < count;
  let column = column0 + row0 + row;
  let to = head * (VALUE_DIM / 4u) + lid % 2u * 2u;
  let s_from = s_at + row * S_PITCH + lid % 2u * 8u;
  //! unroll v VALUE_TILES
  coopStoreT(o$v, &s_tile[s_at], S_PITCH);
  write_values(s_from, column, to + $v * 4u, scale, valid_row, lid);
  //! end
}
