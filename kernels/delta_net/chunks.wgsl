// DeltaNet, prefill class: chunks of CHUNK positions from the prompt's start, of which a workgroup has
// PART vectors of 4 of a head's values. With the state S before a chunk and G_r the product of the
// decays up to its r-th column, its columns follow from each other by
//   u_r = beta_r (v_r - G_r S^T k_r - sum over i < r of G_r / G_i (k_i . k_r) u_i)
//   out_r = G_r S^T q_r + sum over i <= r of G_r / G_i (k_i . q_r) u_i
// and leave S = G S + sum of G / G_r k_r u_r^T (G: of the last one). Columns that a chunk lacks are zeros.
// Includes: lib/reduce_*. Dispatch: x over parts of heads, y over runs.
//! include lib/step.wgsl
//! include delta_net/gates.wgsl
@group(0) @binding(1) var<storage, read_write> out: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> states: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> x: array<vec4<f32>>;

const KEYS = KEY_DIM / 4u;
const ROW = KEYS + 1u;  // of keys and queries, so that rows lie in different banks
const TASKS = 2u * CHUNK * PART;  // S^T k and S^T q
const SPLIT = WORKGROUP_X / TASKS;
const SHARE = (KEYS + SPLIT - 1u) / SPLIT;

var<workgroup> keys: array<vec4<f32>, CHUNK * ROW>;
var<workgroup> queries: array<vec4<f32>, CHUNK * ROW>;
var<workgroup> state: array<vec4<f32>, KEY_DIM * PART>;
var<workgroup> sums: array<vec4<f32>, WORKGROUP_X>;  // of splits; then of TASKS, times G_r
var<workgroup> updates: array<vec4<f32>, CHUNK * PART>;
var<workgroup> of_keys: array<f32, CHUNK * CHUNK>;
var<workgroup> of_queries: array<f32, CHUNK * CHUNK>;
var<workgroup> decay: array<f32, CHUNK>;  // logarithm of a column's; then G / G_r
var<workgroup> log_decay: array<f32, CHUNK>;  // of G_r
var<workgroup> beta: array<f32, CHUNK>;

fn dot_row(a: u32, b: u32) -> vec2<f32> {
  var sum = vec2<f32>();
  for (var i = 0u; i < KEYS; i = i + 1u) {
    let k = keys[a * ROW + i];
    let other = keys[b * ROW + i];
    let q = queries[b * ROW + i];
    sum.x = fma(k.w, other.w, fma(k.z, other.z, fma(k.y, other.y, fma(k.x, other.x, sum.x))));
    sum.y = fma(k.w, q.w, fma(k.z, q.z, fma(k.y, q.y, fma(k.x, q.x, sum.y))));
  }
  return sum;
}

@compute @workgroup_size(WORKGROUP_X)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
  let head = wid.x / PARTS;
  let first_vector = wid.x % PARTS * PART;
  let run = runs[wid.y];
  let key_head = key_head_of(head) * KEYS;
  let stored = (run.z * HEADS + head) * KEY_DIM * VECTORS + first_vector;
  for (var i = lid; i < KEY_DIM * PART; i = i + WORKGROUP_X) {
    var s = vec4<f32>();
    if (run.w > 0u && first_vector + i % PART < VECTORS) {
      s = states[stored + i / PART * VECTORS + i % PART];
    }
    state[i] = s;
  }
  let last = run.x + run.y;
  for (var begin = run.x; begin < last;) {
    let position = run.w + begin - run.x;
    let columns = min(CHUNK - position % CHUNK, last - begin);
    workgroupBarrier();
    // Keys and queries, and the factors that make them unit vectors.
    for (var i = lid; i < CHUNK * KEYS; i = i + WORKGROUP_X) {
      let r = i / KEYS;
      var q = vec4<f32>();
      var k = vec4<f32>();
      if (r < columns) {
        let at = (begin + r) * X_STRIDE4 + key_head + i % KEYS;
        q = x[at];
        k = x[at + KEY_HEADS * KEYS];
      }
      queries[r * ROW + i % KEYS] = q;
      keys[r * ROW + i % KEYS] = k;
    }
    if (lid < CHUNK) {
      var log_one = 0.0;
      var b = 0.0;
      if (lid < columns) {
        log_one = log_decay_at(begin + lid, head);
        b = beta_at(begin + lid, head);
      }
      decay[lid] = log_one;
      beta[lid] = b;
    }
    workgroupBarrier();
    if (lid < CHUNK) {
      var sum = 0.0;
      for (var i = 0u; i <= lid; i = i + 1u) {
        sum = sum + decay[i];
      }
      log_decay[lid] = sum;
    }
    for (var first = 0u; first < 2u * CHUNK; first = first + WORKGROUP_X / 8u) {
      let row = first + lid / 8u;
      let is_key = row >= CHUNK;
      let at = select(row, row - CHUNK, is_key) % CHUNK * ROW;
      var squares = 0.0;
      for (var i = lid % 8u; i < KEYS; i = i + 8u) {
        let v = select(queries[at + i], keys[at + i], is_key);
        squares = fma(v.w, v.w, fma(v.z, v.z, fma(v.y, v.y, fma(v.x, v.x, squares))));
      }
      let all = octet_sum_f32(squares, lid) + 1e-6;
      let factor = 1.0 / sqrt(all * select(f32(KEY_DIM), 1.0, is_key));
      if (row < 2u * CHUNK) {
        for (var i = lid % 8u; i < KEYS; i = i + 8u) {
          if (is_key) {
            keys[at + i] = keys[at + i] * factor;
          } else {
            queries[at + i] = queries[at + i] * factor;
          }
        }
      }
    }
    workgroupBarrier();
    // What columns have to do with each other, and with the state.
    for (var i = lid; i < CHUNK * CHUNK; i = i + WORKGROUP_X) {
      let r = i / CHUNK;
      let c = i % CHUNK;
      if (c <= r) {
        let both = dot_row(c, r) * exp(log_decay[r] - log_decay[c]);
        of_keys[i] = both.x;
        of_queries[i] = both.y;
      }
    }
    let task = lid % TASKS;
    let of_query = task >= CHUNK * PART;
    let r_of_task = task / PART % CHUNK;
    let j = task % PART;
    var sum = vec4<f32>();
    for (var i = lid / TASKS * SHARE; i < min((lid / TASKS + 1u) * SHARE, KEYS); i = i + 1u) {
      let v = select(keys[r_of_task * ROW + i], queries[r_of_task * ROW + i], of_query);
      let s = i * 4u * PART + j;
      sum = fma(vec4<f32>(v.x), state[s], sum);
      sum = fma(vec4<f32>(v.y), state[s + PART], sum);
      sum = fma(vec4<f32>(v.z), state[s + 2u * PART], sum);
      sum = fma(vec4<f32>(v.w), state[s + 3u * PART], sum);
    }
    sums[lid] = sum;
    workgroupBarrier();
    if (lid < TASKS) {
      for (var i = 1u; i < SPLIT; i = i + 1u) {
        sum = sum + sums[lid + i * TASKS];
      }
      sums[lid] = sum * exp(log_decay[r_of_task]);
    }
    workgroupBarrier();
    if (lid < PART) {
      let value = begin * X_STRIDE4 + 2u * KEY_HEADS * KEYS + head * VECTORS + first_vector + lid;
      let own = first_vector + lid < VECTORS;
      //! unroll r CHUNK
      var u_$r = vec4<f32>();
      if (own && $r < columns) {
        u_$r = x[value + $r * X_STRIDE4] - sums[$r * PART + lid];
      }
      //! end
      //! unroll r CHUNK
      //! unroll i CHUNK
      if ($i < $r) {
        u_$r = fma(vec4<f32>(-of_keys[$r * CHUNK + $i]), u_$i, u_$r);
      }
      //! end
      u_$r = u_$r * beta[$r];
      updates[$r * PART + lid] = u_$r;
      //! end
    }
    if (lid < CHUNK) {
      decay[lid] = exp(log_decay[CHUNK - 1u] - log_decay[lid]);
    }
    workgroupBarrier();
    if (lid >= CHUNK * PART && lid < TASKS && r_of_task < columns && first_vector + j < VECTORS) {
      var result = sums[lid];
      for (var i = 0u; i <= r_of_task; i = i + 1u) {
        result = fma(vec4<f32>(of_queries[r_of_task * CHUNK + i]), updates[i * PART + j], result);
      }
      out[(begin + r_of_task) * OUT_STRIDE4 + head * VECTORS + first_vector + j] = result;
    }
    let all = exp(log_decay[CHUNK - 1u]);
    for (var i = lid; i < KEYS * PART; i = i + WORKGROUP_X) {
      let rows = i / PART * 4u * PART + i % PART;
      var s_0 = state[rows] * all;
      var s_1 = state[rows + PART] * all;
      var s_2 = state[rows + 2u * PART] * all;
      var s_3 = state[rows + 3u * PART] * all;
      for (var r = 0u; r < CHUNK; r = r + 1u) {
        let k = keys[r * ROW + i / PART] * decay[r];
        let u = updates[r * PART + i % PART];
        s_0 = fma(vec4<f32>(k.x), u, s_0);
        s_1 = fma(vec4<f32>(k.y), u, s_1);
        s_2 = fma(vec4<f32>(k.z), u, s_2);
        s_3 = fma(vec4<f32>(k.w), u, s_3);
      }
      state[rows] = s_0;
      state[rows + PART] = s_1;
      state[rows + 2u * PART] = s_2;
      state[rows + 3u * PART] = s_3;
    }
    begin = begin + columns;
  }
  workgroupBarrier();
  for (var i = lid; i < KEY_DIM * PART; i = i + WORKGROUP_X) {
    if (first_vector + i % PART < VECTORS) {
      states[stored + i / PART * VECTORS + i % PART] = state[i];
    }
  }
}
