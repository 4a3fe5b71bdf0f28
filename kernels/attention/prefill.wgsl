// Attention, prefill class: a workgroup has one query head and a tile of up to 32 columns of one slot;
// it walks tiles of 32 absolute positions with an online softmax. Dimensions go through workgroup
// memory 64 at a time. An invocation has two rows: four keys of each for the scores, then two
// vectors of each 64 dimensions for the values. A row skips tiles that it sees nothing of, so its
// bits do not depend on the other rows.
// Includes: lib/reduce_*, kv/read_*. Dispatch: x over heads, y over tiles.
//! include lib/step.wgsl
//! include kv/pages.wgsl
//! include attention/score.wgsl
//! include attention/sink.wgsl
@group(0) @binding(1) var<storage, read_write> out: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> q: array<f32>;
@group(0) @binding(7) var<storage, read> tiles: array<vec4<u32>>;  // first column, columns
@group(0) @binding(8) var<storage, read> sinks: array<f32>;

const KEYS = 32u;
const PITCH = 17u;  // vectors of a row of 64 dimensions, and one against bank conflicts
const KEY_CHUNKS = (HEAD_DIM + 63u) / 64u;
const VALUE_CHUNKS = (VALUE_DIM + 63u) / 64u;
const LOWEST = -3.0e38;

var<workgroup> q_tile: array<vec4<f32>, 32u * PITCH>;
var<workgroup> kv_tile: array<vec4<f32>, 32u * PITCH>;
var<workgroup> p_tile: array<f32, 32u * 33u>;

fn load_q(column0: u32, count: u32, head: u32, chunk: u32, lid: u32) {
  for (var i = lid; i < 32u * 16u; i = i + WORKGROUP_X) {
    let row = i / 16u;
    let d = chunk * 64u + (i % 16u) * 4u;
    var v = vec4<f32>();
    if (row < count && d < HEAD_DIM) {  // 4 divides HEAD_DIM
      let at = (column0 + row) * Q_STRIDE + head * HEAD_DIM + d;
      v = vec4<f32>(q[at], q[at + 1u], q[at + 2u], q[at + 3u]);
    }
    q_tile[row * PITCH + i % 16u] = v;
  }
}

// Keys seen.x..seen.y - 1 of the tile at key0; zero elsewhere.
fn load_keys(slot: u32, kv_head: u32, key0: u32, seen: vec2<u32>, chunk: u32, lid: u32) {
  for (var i = lid; i < 32u * 8u; i = i + WORKGROUP_X) {
    let key = key0 + i / 8u;
    let d = chunk * 64u + (i % 8u) * 8u;
    var v = Eight(vec4<f32>(), vec4<f32>());
    if (key >= seen.x && key < seen.y && d < HEAD_DIM) {
      v = key8(kv_row(slot, key, kv_head) * KEY_STRIDE + d);
    }
    let at = (i / 8u) * PITCH + (i % 8u) * 2u;
    kv_tile[at] = v.a;
    kv_tile[at + 1u] = v.b;
  }
}

fn load_values(slot: u32, kv_head: u32, key0: u32, seen: vec2<u32>, chunk: u32, lid: u32) {
  for (var i = lid; i < 32u * 16u; i = i + WORKGROUP_X) {
    let key = key0 + i / 16u;
    let d = chunk * 64u + (i % 16u) * 4u;
    var v = vec4<f32>();
    if (key >= seen.x && key < seen.y && d < VALUE_DIM) {
      v = value4(kv_row(slot, key, kv_head) * VALUE_STRIDE + d);
    }
    kv_tile[(i / 16u) * PITCH + i % 16u] = v;
  }
}

fn across(v: vec4<f32>) -> f32 {
  return (v.x + v.y) + (v.z + v.w);
}

@compute @workgroup_size(WORKGROUP_X)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
  let head = wid.x;
  let kv_head = head / GROUP_HEADS;
  let column0 = tiles[wid.y].x;
  let count = tiles[wid.y].y;
  let position0 = columns[column0].y;
  let slot = columns[column0].z;
  let lane = lid % 8u;
  let row0 = (lid / 8u) * 2u;
  // Every row is at position0 + its index.
  let seen = vec2<u32>(first_key(position0), position0 + count);
  var largest = vec2<f32>(LOWEST);
  var sum = vec2<f32>();
  var acc: array<vec4<f32>, VALUE_CHUNKS * 4u>;  // [chunk][row][lane, lane + 8]
  if (KEY_CHUNKS == 1u) {
    load_q(column0, count, head, 0u, lid);
  }
  for (var key0 = (seen.x / KEYS) * KEYS; key0 < seen.y; key0 = key0 + KEYS) {
    var d00 = vec4<f32>();  // row 0 with keys lane, lane + 8, ...
    var d01 = vec4<f32>();
    var d02 = vec4<f32>();
    var d03 = vec4<f32>();
    var d10 = vec4<f32>();
    var d11 = vec4<f32>();
    var d12 = vec4<f32>();
    var d13 = vec4<f32>();
    for (var chunk = 0u; chunk < KEY_CHUNKS; chunk = chunk + 1u) {
      workgroupBarrier();
      if (KEY_CHUNKS > 1u) {
        load_q(column0, count, head, chunk, lid);
      }
      load_keys(slot, kv_head, key0, seen, chunk, lid);
      workgroupBarrier();
      for (var i = 0u; i < 16u; i = i + 1u) {
        let q0 = q_tile[row0 * PITCH + i];
        let q1 = q_tile[(row0 + 1u) * PITCH + i];
        let k0 = kv_tile[lane * PITCH + i];
        let k1 = kv_tile[(lane + 8u) * PITCH + i];
        let k2 = kv_tile[(lane + 16u) * PITCH + i];
        let k3 = kv_tile[(lane + 24u) * PITCH + i];
        d00 = fma(q0, k0, d00);
        d01 = fma(q0, k1, d01);
        d02 = fma(q0, k2, d02);
        d03 = fma(q0, k3, d03);
        d10 = fma(q1, k0, d10);
        d11 = fma(q1, k1, d11);
        d12 = fma(q1, k2, d12);
        d13 = fma(q1, k3, d13);
      }
    }
    let dots0 = vec4<f32>(across(d00), across(d01), across(d02), across(d03));
    let dots1 = vec4<f32>(across(d10), across(d11), across(d12), across(d13));
    let keys4 = vec4<u32>(key0 + lane) + vec4<u32>(0u, 8u, 16u, 24u);
    for (var r = 0u; r < 2u; r = r + 1u) {
      let own = position0 + row0 + r;
      let begin = first_key(own);
      let dots = select(dots0, dots1, r == 1u);
      let valid = (keys4 <= vec4<u32>(own)) & (keys4 >= vec4<u32>(begin));
      let scores = select(vec4<f32>(LOWEST),
                          vec4<f32>(score(dots.x), score(dots.y), score(dots.z), score(dots.w)), valid);
      let tile_largest =
          octet_max_f32(max(max(scores.x, scores.y), max(scores.z, scores.w)), lid);
      if (key0 <= own && key0 + KEYS > begin) {
        let m = max(largest[r], tile_largest);
        let correction = exp(largest[r] - m);
        largest[r] = m;
        sum[r] = sum[r] * correction;
        for (var c = 0u; c < VALUE_CHUNKS; c = c + 1u) {
          acc[c * 4u + r * 2u] = acc[c * 4u + r * 2u] * correction;
          acc[c * 4u + r * 2u + 1u] = acc[c * 4u + r * 2u + 1u] * correction;
        }
        let p = select(vec4<f32>(), exp(scores - vec4<f32>(m)), valid);
        let at = (row0 + r) * 33u + lane;
        p_tile[at] = p.x;
        p_tile[at + 8u] = p.y;
        p_tile[at + 16u] = p.z;
        p_tile[at + 24u] = p.w;
      } else {
        let at = (row0 + r) * 33u + lane;
        p_tile[at] = 0.0;
        p_tile[at + 8u] = 0.0;
        p_tile[at + 16u] = 0.0;
        p_tile[at + 24u] = 0.0;
      }
    }
    for (var c = 0u; c < VALUE_CHUNKS; c = c + 1u) {
      workgroupBarrier();
      load_values(slot, kv_head, key0, seen, c, lid);
      workgroupBarrier();
      for (var i = 0u; i < KEYS; i = i + 1u) {
        let p0 = p_tile[row0 * 33u + i];
        let p1 = p_tile[(row0 + 1u) * 33u + i];
        let va = kv_tile[i * PITCH + lane];
        let vb = kv_tile[i * PITCH + lane + 8u];
        acc[c * 4u] = fma(vec4<f32>(p0), va, acc[c * 4u]);
        acc[c * 4u + 1u] = fma(vec4<f32>(p0), vb, acc[c * 4u + 1u]);
        acc[c * 4u + 2u] = fma(vec4<f32>(p1), va, acc[c * 4u + 2u]);
        acc[c * 4u + 3u] = fma(vec4<f32>(p1), vb, acc[c * 4u + 3u]);
        if (c == 0u) {
          sum = sum + vec2<f32>(p0, p1);
        }
      }
    }
  }
  sum = vec2<f32>(with_sink(sum.x, largest.x, head), with_sink(sum.y, largest.y, head));
  for (var c = 0u; c < VALUE_CHUNKS; c = c + 1u) {
    for (var r = 0u; r < 2u; r = r + 1u) {
      if (row0 + r < count) {
        let at = (column0 + row0 + r) * OUT_STRIDE4 + head * (VALUE_DIM / 4u);
        let d = c * 16u + lane;
        if (d * 4u < VALUE_DIM) {
          out[at + d] = acc[c * 4u + r * 2u] / sum[r];
        }
        if ((d + 8u) * 4u < VALUE_DIM) {
          out[at + d + 8u] = acc[c * 4u + r * 2u + 1u] / sum[r];
        }
      }
    }
  }
}
