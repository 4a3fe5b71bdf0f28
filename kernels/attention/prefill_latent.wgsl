// Attention of the prefill class to latents, whose first elements are the values, on cooperative
// matrices of 16 x 16 halves: a workgroup of eight subgroups of 32 has a query head and a tile of up to
// 32 columns of one slot. It walks tiles of 32 absolute positions twice, as attention/prefill_matrix.wgsl
// does; a tile of keys in workgroup memory serves scores and values. A subgroup makes the scores of 16
// columns and 16 keys over half of the dimensions, and the sums of an eighth of the values of all
// columns. Keys that a row does not see add zeros: its bits do not depend on the other rows.
// Includes: kv/read_f16, out/*. Dispatch: x over heads, y over tiles of columns.
//! include attention/matrix_tile.wgsl

const ROWS = 32u;
const PITCH = HEAD_DIM / 4u + 2u;  // vectors of a row, and two against bank conflicts
const SCALES_AT = 2048u;  // behind 16 x 16 results of each subgroup

var<workgroup> kv_tile: array<vec4<f16>, KEYS * PITCH>;      // [key][dimension / 4]; queries at first
var<workgroup> s_tile: array<f32, 2u * ROWS * S_PITCH>;      // [half of the dimensions][row][key]
var<workgroup> p_tile: array<vec4<f16>, ROWS * P_PITCH>;     // [row][key / 4]

fn load_queries(column0: u32, count: u32, head: u32, lid: u32) {
  for (var i = lid; i < ROWS * (HEAD_DIM / 4u); i = i + WORKGROUP_X) {
    let row = i / (HEAD_DIM / 4u);
    let d = i % (HEAD_DIM / 4u);
    let at = (column0 + min(row, count - 1u)) * Q_STRIDE + head * HEAD_DIM + d * 4u;
    kv_tile[row * PITCH + d] = to_halves(vec4<f32>(q[at], q[at + 1u], q[at + 2u], q[at + 3u]));
  }
}

@compute @workgroup_size(WORKGROUP_X)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
  let column0 = tiles[wid.y].x;
  let count = tiles[wid.y].y;
  let position0 = columns[column0].y;
  let slot = columns[column0].z;
  let head = wid.x;
  let kv_head = head / GROUP_HEADS;
  // Of the subgroup.
  let subgroup = lid / 32u;
  let row0 = subgroup % 2u * 16u;
  let tile_key0 = subgroup / 2u % 2u * 16u;
  let dim_half = subgroup / 4u;
  let scores_from = tile_key0 * PITCH + dim_half * (HEAD_DIM / 8u);
  let scores_to = (dim_half * ROWS + row0) * S_PITCH + tile_key0;
  let values_from = subgroup * (VALUE_DIM / 32u);
  // Of the invocation: four keys of a row. Every row is at position0 + its index.
  let row = lid / 8u;
  let keys_at = lid % 8u * 4u;
  let own = position0 + row;
  let begin = first_key(own);
  let seen = vec2<u32>(first_key(position0), position0 + count);
  load_queries(column0, count, head, lid);
  workgroupBarrier();
  //! unroll d HALF_KEY_TILES
  let q$d = coopLoadT<coop_mat16x16<f16, A>>(
      &kv_tile[row0 * PITCH + dim_half * (HEAD_DIM / 8u) + $d * 4u], PITCH);
  //! end
  //! unroll r 2
  //! unroll v VALUE_TILES
  var o_$r_$v = coop_mat16x16<f32, C>();
  //! end
  //! end
  workgroupBarrier();
  var largest = LOWEST;
  var sum = 0.0;
  // Invocations copy eight elements at a time, which are loaded while the tile before is multiplied.
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
        put8(key_row_$i * PITCH + key_d_$i * 2u, key_bits_$i, key >= seen.x && key < seen.y);
      }
      //! end
      let next = select(first_tile, key0 + KEYS, key0 + KEYS < seen.y);
      workgroupBarrier();
      //! unroll i KEY_COPIES
      key_bits_$i =
          load_keys(slot, kv_head, clamp(next + key_row_$i, seen.x, seen.y - 1u), key_d_$i);
      //! end
      var s = coop_mat16x16<f32, C>();
      //! unroll d HALF_KEY_TILES
      s = coopMultiplyAdd(
          q$d, coopLoad<coop_mat16x16<f16, B>>(&kv_tile[scores_from + $d * 4u], PITCH), s);
      //! end
      coopStoreT(s, &s_tile[scores_to], S_PITCH);
      workgroupBarrier();
      let at = row * S_PITCH + keys_at;
      let dots = four_dots(at) + four_dots(at + ROWS * S_PITCH);
      let scores = vec4<f32>(score(dots.x), score(dots.y), score(dots.z), score(dots.w));
      let keys4 = vec4<u32>(key0 + keys_at) + vec4<u32>(0u, 1u, 2u, 3u);
      let valid = (keys4 <= vec4<u32>(own)) & (keys4 >= vec4<u32>(begin)) & vec4<bool>(row < count);
      if (pass_index == 0u) {
        let kept = select(vec4<f32>(LOWEST), scores, valid);
        largest = max(largest, max(max(kept.x, kept.y), max(kept.z, kept.w)));
      } else {
        let p = vec4<f16>(select(vec4<f32>(), exp(scores - vec4<f32>(largest)), valid));
        sum = sum + ((f32(p.x) + f32(p.y)) + (f32(p.z) + f32(p.w)));
        p_tile[row * P_PITCH + keys_at / 4u] = p;
      }
      // Only in the second pass. Front ends take an `if` of a variable for divergent.
      for (var once = 0u; once < pass_index; once = once + 1u) {
        workgroupBarrier();
        for (var half = 0u; half < 2u; half = half + 1u) {
          //! unroll r 2
          let p_$r = coopLoadT<coop_mat16x16<f16, A>>(
              &p_tile[$r * 16u * P_PITCH + half * 4u], P_PITCH);
          //! end
          let v_at = half * 16u * PITCH + values_from;
          //! unroll v VALUE_TILES
          let v_$v = coopLoadT<coop_mat16x16<f16, B>>(&kv_tile[v_at + $v * 4u], PITCH);
          //! unroll r 2
          o_$r_$v = coopMultiplyAdd(p_$r, v_$v, o_$r_$v);
          //! end
          //! end
        }
        workgroupBarrier();
      }
    }
    largest = max(largest, subgroupShuffleXor(largest, 1u));
    largest = max(largest, subgroupShuffleXor(largest, 2u));
    largest = max(largest, subgroupShuffleXor(largest, 4u));
  }
  sum = sum + subgroupShuffleXor(sum, 1u);
  sum = sum + subgroupShuffleXor(sum, 2u);
  sum = sum + subgroupShuffleXor(sum, 4u);
  workgroupBarrier();
  s_tile[SCALES_AT + row] = 1.0 / with_sink(sum, largest, head);
  workgroupBarrier();
  let lane = lid % 32u;
  let s_at = subgroup * 256u;
  //! unroll r 2
  let column_$r = $r * 16u + lane / 2u;
  let scale_$r = s_tile[SCALES_AT + column_$r];
  //! unroll v VALUE_TILES
  coopStoreT(o_$r_$v, &s_tile[s_at], 16u);
  write_values(s_at + lane * 8u, column0 + column_$r,
               head * (VALUE_DIM / 4u) + values_from + $v * 4u + lane % 2u * 2u, scale_$r,
               column_$r < count, lid);
  //! end
  //! end
}

fn four_dots(at: u32) -> vec4<f32> {
  return vec4<f32>(s_tile[at], s_tile[at + 1u], s_tile[at + 2u], s_tile[at + 3u]);
}
