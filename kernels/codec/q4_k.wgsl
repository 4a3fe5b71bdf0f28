// Q4_K: blocks of 256 values in 8 groups of 32, value = d * scale * q - dmin * min. 9 vectors a block:
// d and dmin (f16) and twelve bytes of 6-bit scales and mins, then 128 bytes of nibbles, of which
// each 32 hold two groups, the even one in the low nibbles.
//! include codec/bytes.wgsl
@group(0) @binding(2) var<storage, read> weights: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> weight_scales: array<u32>;  // not used

struct Group {
  lo: vec4<u32>,  // a value in each byte
  hi: vec4<u32>,
  d: f32,
  m: f32,  // subtracted
}

fn load_group(row: u32, group: u32) -> Group {
  let block = (row * (GROUPS / 8u) + group / 8u) * 9u;
  let j = group % 8u;
  let head = weights[block];
  let shift = 8u * (j & 3u);
  var scale = (head.y >> shift) & 63u;
  var low = (head.z >> shift) & 63u;
  if (j >= 4u) {
    scale = ((head.w >> shift) & 15u) | (((head.y >> (shift + 6u)) & 3u) << 4u);
    low = ((head.w >> (shift + 4u)) & 15u) | (((head.z >> (shift + 6u)) & 3u) << 4u);
  }
  let dm = unpack2x16float(head.x);
  let q = block + 1u + (j / 2u) * 2u;
  let nibble = vec4<u32>(4u * (j & 1u));
  return Group((weights[q] >> nibble) & vec4<u32>(0x0f0f0f0fu),
               (weights[q + 1u] >> nibble) & vec4<u32>(0x0f0f0f0fu), dm.x * f32(scale), dm.y * f32(low));
}

fn shifted(q: u32, d: f32, m: f32) -> vec4<f32> {
  return fma(vec4<f32>(d), unsigned_bytes(q), vec4<f32>(-m));
}

fn group_floats(g: Group) -> array<vec4<f32>, 8> {
  return array<vec4<f32>, 8>(shifted(g.lo.x, g.d, g.m), shifted(g.lo.y, g.d, g.m),
                             shifted(g.lo.z, g.d, g.m), shifted(g.lo.w, g.d, g.m),
                             shifted(g.hi.x, g.d, g.m), shifted(g.hi.y, g.d, g.m),
                             shifted(g.hi.z, g.d, g.m), shifted(g.hi.w, g.d, g.m));
}

fn group_dot(g: Group, x: XGroup, acc: f32) -> f32 {
  return fma(-g.m * x.d, f32(x.sum),
             fma(g.d * x.d, block_dot(g.lo, g.hi, x, 0), acc));
}
