// What the kernels of decode attention share before the values: queries, and what octets have of the
// scores.
@group(0) @binding(2) var<storage, read> q: array<f32>;

const Q_PITCH = KEY_PARTS * 8u;  // vectors of 8; a part has 64 elements
const LOWEST = -3.0e38;

var<workgroup> q_tile: array<Eight, Q_TILE>;  // HEAD_TILE * Q_PITCH, or more
var<workgroup> octet_largest: array<f32, HEAD_TILE * OCTETS>;
var<workgroup> octet_sums: array<f32, HEAD_TILE * OCTETS>;

fn query4(at: u32, d: u32) -> vec4<f32> {
  if (d < HEAD_DIM) {  // 4 divides HEAD_DIM
    return vec4<f32>(q[at + d], q[at + d + 1u], q[at + d + 2u], q[at + d + 3u]);
  }
  return vec4<f32>();
}

fn load_queries(column: u32, head0: u32, heads: u32, lid: u32) {
  for (var i = lid; i < HEAD_TILE * Q_PITCH; i = i + WORKGROUP_X) {
    let h = i / Q_PITCH;
    let d = i % Q_PITCH * 8u;
    var v = Eight();
    if (h < heads) {
      let at = column * Q_STRIDE + (head0 + h) * HEAD_DIM;
      v = Eight(query4(at, d), query4(at, d + 4u));
    }
    q_tile[i] = v;
  }
}

fn dot8(x: Eight, y: Eight, sum: f32) -> f32 {
  let s = fma(x.a.w, y.a.w, fma(x.a.z, y.a.z, fma(x.a.y, y.a.y, fma(x.a.x, y.a.x, sum))));
  return fma(x.b.w, y.b.w, fma(x.b.z, y.b.z, fma(x.b.y, y.b.y, fma(x.b.x, y.b.x, s))));
}
