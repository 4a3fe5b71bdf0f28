// Splits [q heads | k heads | v heads] of a column: clip to +-CLIP (CLIP > 0), norm of q and k heads
// (Q_NORM, K_NORM), rotation by the position (ROTARY_DIM > 0; cos at 2 i, sin at 2 i + 1 of a table
// row), scale of q by the position; q goes to out, k and v to the pages. The norm is that of
// plan/op.h's HeadNorm: LAYER, ALL_HEADS, AFTER_ROPE, V_NORM; weights of a head begin at a multiple of
// Q_NORM_STRIDE or K_NORM_STRIDE.
// Includes: lib/reduce_*, kv/write_*. Dispatch: x over heads (q, k, v; with shared KV q only), y over
// columns.
//! include lib/step.wgsl
//! include lib/nan.wgsl
//! include lib/rotate.wgsl
//! include kv/pages.wgsl
@group(0) @binding(1) var<storage, read_write> out: array<f32>;
@group(0) @binding(2) var<storage, read> qkv: array<f32>;
@group(0) @binding(7) var<storage, read> q_norm: array<f32>;
@group(0) @binding(8) var<storage, read> k_norm: array<f32>;
@group(0) @binding(10) var<storage, read> query_scale: array<f32>;  // rows of QUERY_SCALE_STRIDE

var<workgroup> head: array<f32, HEAD_DIM + VALUE_DIM>;

fn clipped(i: u32) -> f32 {
  let v = qkv[i];
  if (CLIP > 0.0) {
    return select(clamp(v, -CLIP, CLIP), v, is_nan(v));
  }
  return v;
}

// Element `i` of the head at `first` of qkv, as its norm takes it.
fn norm_input(first: u32, i: u32, position: u32) -> f32 {
  if (!AFTER_ROPE || i >= ROTARY_DIM) {
    return clipped(first + i);
  }
  var pair = i / 2u;
  var second = i % 2u == 1u;
  if (!INTERLEAVED) {
    second = i >= ROTARY_DIM / 2u;
    pair = select(i, i - ROTARY_DIM / 2u, second);
  }
  let ij = pair_elements(pair);
  let ab = rotated(clipped(first + ij.x), clipped(first + ij.y), pair, position);
  return select(ab.x, ab.y, second);
}

// What a norm does to a head's elements before the weights: (x - mean) * factor.
struct Norm {
  mean: f32,
  factor: f32,
}

// The norm of the `heads` heads from `first` of qkv on. All invocations call.
fn norm_of(first: u32, heads: u32, position: u32, lid: u32) -> Norm {
  let count = f32(heads * HEAD_DIM);
  var mean = 0.0;
  if (LAYER) {
    var sum = 0.0;
    for (var i = lid; i < heads * HEAD_DIM; i = i + WORKGROUP_X) {
      sum = sum + norm_input(first + i / HEAD_DIM * HEAD_DIM, i % HEAD_DIM, position);
    }
    mean = workgroup_sum(sum, lid) / count;
  }
  var squares = 0.0;
  for (var i = lid; i < heads * HEAD_DIM; i = i + WORKGROUP_X) {
    let v = norm_input(first + i / HEAD_DIM * HEAD_DIM, i % HEAD_DIM, position) - mean;
    squares = fma(v, v, squares);
  }
  return Norm(mean, 1.0 / sqrt(fma(workgroup_sum(squares, lid), 1.0 / count, NORM_EPS)));
}

// Applies the norm to the elements of q or k head `part`, each invocation to those that it loaded.
fn normalise(norm: Norm, part: u32, lid: u32) {
  if (Q_NORM && part < HEADS) {
    for (var i = lid; i < HEAD_DIM; i = i + WORKGROUP_X) {
      head[i] = (head[i] - norm.mean) * norm.factor * (q_norm[part * Q_NORM_STRIDE + i] + WEIGHT_OFFSET);
    }
  }
  if (K_NORM && part >= HEADS && part < HEADS + KV_HEADS) {
    for (var i = lid; i < HEAD_DIM; i = i + WORKGROUP_X) {
      head[i] = (head[i] - norm.mean) * norm.factor *
                (k_norm[(part - HEADS) * K_NORM_STRIDE + i] + WEIGHT_OFFSET);
    }
  }
}

@compute @workgroup_size(WORKGROUP_X)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
  let is_q = wid.x < HEADS;
  let is_v = wid.x >= HEADS + KV_HEADS;
  let column = columns[wid.y];
  let row = wid.y * QKV_STRIDE;
  var dim = HEAD_DIM;
  var first = row + wid.x * HEAD_DIM;
  if (is_v) {
    dim = VALUE_DIM;
    first = row + (HEADS + KV_HEADS) * HEAD_DIM + (wid.x - HEADS - KV_HEADS) * VALUE_DIM;
  }
  var squares = 0.0;
  for (var i = lid; i < dim; i = i + WORKGROUP_X) {
    let v = clipped(first + i);
    head[i] = v;
    squares = fma(v, v, squares);
  }
  var norm = Norm(0.0, 1.0);
  if (V_NORM && is_v) {
    let factor = 1.0 / sqrt(fma(workgroup_sum(squares, lid), 1.0 / f32(VALUE_DIM), NORM_EPS));
    for (var i = lid; i < VALUE_DIM; i = i + WORKGROUP_X) {
      head[i] = head[i] * factor;
    }
  } else if (Q_NORM || K_NORM) {
    if (ALL_HEADS) {
      let heads_row = select(row + HEADS * HEAD_DIM, row, is_q);
      norm = norm_of(heads_row, select(KV_HEADS, HEADS, is_q), column.y, lid);
    } else if (LAYER || AFTER_ROPE) {
      norm = norm_of(first, select(1u, 0u, is_v), column.y, lid);
    } else {
      // The sum is already there.
      norm.factor = 1.0 / sqrt(fma(workgroup_sum(squares, lid), 1.0 / f32(HEAD_DIM), NORM_EPS));
    }
    if (!AFTER_ROPE) {
      normalise(norm, wid.x, lid);
    }
  }
  workgroupBarrier();
  if (!is_v) {
    for (var pair = lid; pair < ROTARY_DIM / 2u; pair = pair + WORKGROUP_X) {
      let ij = pair_elements(pair);
      let ab = rotated(head[ij.x], head[ij.y], pair, column.y);
      head[ij.x] = ab.x;
      head[ij.y] = ab.y;
    }
  }
  workgroupBarrier();
  if (AFTER_ROPE) {
    normalise(norm, wid.x, lid);
    workgroupBarrier();
  }
  if (is_q) {
    var scale = 1.0;
    if (QUERY_SCALE) {
      scale = query_scale[column.y * QUERY_SCALE_STRIDE];
    }
    for (var i = lid; i < HEAD_DIM; i = i + WORKGROUP_X) {
      out[wid.y * OUT_STRIDE + wid.x * HEAD_DIM + i] = head[i] * scale;
    }
  } else if (is_v) {
    let page_row = kv_row(column.z, column.y, wid.x - HEADS - KV_HEADS) * VALUE_STRIDE;
    for (var i = lid * 2u; i < VALUE_DIM; i = i + WORKGROUP_X * 2u) {
      put_value(page_row + i, head[i], head[i + 1u]);
    }
  } else {
    let page_row = kv_row(column.z, column.y, wid.x - HEADS) * KEY_STRIDE;
    for (var i = lid * 2u; i < HEAD_DIM; i = i + WORKGROUP_X * 2u) {
      put_key(page_row + i, head[i], head[i + 1u]);
    }
  }
}
