// Splits [q heads | k heads | v heads] of a column: norm of q and k heads (Q_NORM, K_NORM), rotation by
// the position (ROTARY_DIM > 0; cos at 2 i, sin at 2 i + 1 of a table row), scale of q by the
// position; q goes to out, k and v to the pages.
// Includes: lib/reduce_*, kv/write_*. Dispatch: x over heads (q, k, v), y over columns.
//! include lib/step.wgsl
//! include kv/pages.wgsl
@group(0) @binding(1) var<storage, read_write> out: array<f32>;
@group(0) @binding(2) var<storage, read> qkv: array<f32>;
@group(0) @binding(7) var<storage, read> q_norm: array<f32>;
@group(0) @binding(8) var<storage, read> k_norm: array<f32>;
@group(0) @binding(9) var<storage, read> rope: array<f32>;         // rows of ROPE_STRIDE
@group(0) @binding(10) var<storage, read> query_scale: array<f32>;  // rows of QUERY_SCALE_STRIDE

var<workgroup> head: array<f32, HEAD_DIM + VALUE_DIM>;

@compute @workgroup_size(WORKGROUP_X)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
  let is_q = wid.x < HEADS;
  let is_v = wid.x >= HEADS + KV_HEADS;
  let column = columns[wid.y];
  var dim = HEAD_DIM;
  var first = wid.y * QKV_STRIDE + wid.x * HEAD_DIM;
  if (is_v) {
    dim = VALUE_DIM;
    first = wid.y * QKV_STRIDE + (HEADS + KV_HEADS) * HEAD_DIM + (wid.x - HEADS - KV_HEADS) * VALUE_DIM;
  }
  var squares = 0.0;
  for (var i = lid; i < dim; i = i + WORKGROUP_X) {
    let v = qkv[first + i];
    head[i] = v;
    squares = fma(v, v, squares);
  }
  if (Q_NORM || K_NORM) {
    let factor = 1.0 / sqrt(fma(workgroup_sum(squares, lid), 1.0 / f32(HEAD_DIM), NORM_EPS));
    if (Q_NORM && is_q) {
      for (var i = lid; i < HEAD_DIM; i = i + WORKGROUP_X) {
        head[i] = head[i] * factor * (q_norm[i] + WEIGHT_OFFSET);
      }
    }
    if (K_NORM && !is_q && !is_v) {
      for (var i = lid; i < HEAD_DIM; i = i + WORKGROUP_X) {
        head[i] = head[i] * factor * (k_norm[i] + WEIGHT_OFFSET);
      }
    }
  }
  workgroupBarrier();
  if (!is_v) {
    for (var pair = lid; pair < ROTARY_DIM / 2u; pair = pair + WORKGROUP_X) {
      var i = pair;
      var j = pair + ROTARY_DIM / 2u;
      if (INTERLEAVED) {
        i = pair * 2u;
        j = i + 1u;
      }
      let c = rope[column.y * ROPE_STRIDE + pair * 2u];
      let s = rope[column.y * ROPE_STRIDE + pair * 2u + 1u];
      let a = head[i];
      let b = head[j];
      head[i] = fma(a, c, -(b * s));
      head[j] = fma(b, c, a * s);
    }
  }
  workgroupBarrier();
  if (is_q) {
    var scale = 1.0;
    if (QUERY_SCALE) {
      scale = query_scale[column.y * QUERY_SCALE_STRIDE];
    }
    for (var i = lid; i < HEAD_DIM; i = i + WORKGROUP_X) {
      out[wid.y * OUT_STRIDE + wid.x * HEAD_DIM + i] = head[i] * scale;
    }
  } else if (is_v) {
    let row = kv_row(column.z, column.y, wid.x - HEADS - KV_HEADS) * VALUE_STRIDE;
    for (var i = lid * 2u; i < VALUE_DIM; i = i + WORKGROUP_X * 2u) {
      put_value(row + i, head[i], head[i + 1u]);
    }
  } else {
    let row = kv_row(column.z, column.y, wid.x - HEADS) * KEY_STRIDE;
    for (var i = lid * 2u; i < HEAD_DIM; i = i + WORKGROUP_X * 2u) {
      put_key(row + i, head[i], head[i + 1u]);
    }
  }
}
