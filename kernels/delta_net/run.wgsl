// DeltaNet: the columns of a run one after another, a part of a head's state in registers: an
// invocation has ROWS_EACH rows of one vector of 4 values. The state is read once and written once.
// Includes: lib/reduce_*. Dispatch: x over parts of heads, y over runs.
//! include lib/step.wgsl
//! include delta_net/gates.wgsl
@group(0) @binding(1) var<storage, read_write> out: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> states: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> x: array<f32>;

const KEYS = KEY_HEADS * KEY_DIM;
const STRIDE = WORKGROUP_X / PART;  // rows from one of an invocation's to its next

var<workgroup> query: array<f32, KEY_DIM>;
var<workgroup> key: array<f32, KEY_DIM>;
var<workgroup> known: array<vec4<f32>, WORKGROUP_X>;
var<workgroup> asked: array<vec4<f32>, WORKGROUP_X>;

@compute @workgroup_size(WORKGROUP_X)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
  let head = wid.x / PARTS;
  let at = wid.x % PARTS * PART + lid % PART;
  let valid = at < VECTORS;
  let first = lid / PART;
  let run = runs[wid.y];
  let key_head = key_head_of(head) * KEY_DIM;
  let state = (run.z * HEADS + head) * KEY_DIM * VECTORS + at;
  //! unroll r ROWS_EACH
  var s_$r = vec4<f32>();
  if (valid && run.w > 0u && first + $r * STRIDE < KEY_DIM) {
    s_$r = states[state + (first + $r * STRIDE) * VECTORS];
  }
  //! end
  for (var c = run.x; c < run.x + run.y; c = c + 1u) {
    let row = c * X_STRIDE;
    var q = 0.0;
    var k = 0.0;
    if (lid < KEY_DIM) {
      q = x[row + key_head + lid];
      k = x[row + KEYS + key_head + lid];
    }
    let query_scale = 1.0 / (sqrt(workgroup_sum(q * q, lid) + 1e-6) * sqrt(f32(KEY_DIM)));
    let key_scale = 1.0 / sqrt(workgroup_sum(k * k, lid) + 1e-6);
    q = q * query_scale;
    k = k * key_scale;
    let both = workgroup_sum(q * k, lid);
    if (lid < KEY_DIM) {
      query[lid] = q;
      key[lid] = k;
    }
    workgroupBarrier();
    var of_key = vec4<f32>();
    var of_query = vec4<f32>();
    //! unroll r ROWS_EACH
    if (first + $r * STRIDE < KEY_DIM) {
      of_key = fma(vec4<f32>(key[first + $r * STRIDE]), s_$r, of_key);
      of_query = fma(vec4<f32>(query[first + $r * STRIDE]), s_$r, of_query);
    }
    //! end
    known[lid] = of_key;
    asked[lid] = of_query;
    workgroupBarrier();
    for (var half = STRIDE / 2u; half > 0u; half = half / 2u) {
      if (first < half) {
        known[lid] = known[lid] + known[lid + half * PART];
        asked[lid] = asked[lid] + asked[lid + half * PART];
      }
      workgroupBarrier();
    }
    let decay = exp(log_decay_at(c, head));
    let beta = beta_at(c, head);
    var delta = vec4<f32>();
    if (valid) {
      let value = row + 2u * KEYS + head * VALUE_DIM + at * 4u;
      let v = vec4<f32>(x[value], x[value + 1u], x[value + 2u], x[value + 3u]);
      delta = beta * fma(vec4<f32>(-decay), known[lid % PART], v);
      if (first == 0u) {
        out[c * OUT_STRIDE4 + head * VECTORS + at] =
            fma(delta, vec4<f32>(both), decay * asked[lid % PART]);
      }
    }
    //! unroll r ROWS_EACH
    if (first + $r * STRIDE < KEY_DIM) {
      s_$r = fma(vec4<f32>(key[first + $r * STRIDE]), delta, decay * s_$r);
    }
    //! end
    workgroupBarrier();
  }
  if (!valid) {
    return;
  }
  //! unroll r ROWS_EACH
  if (first + $r * STRIDE < KEY_DIM) {
    states[state + (first + $r * STRIDE) * VECTORS] = s_$r;
  }
  //! end
}
