// IQ3_S: blocks of 256 values in 8 groups of 32, value = d * (2 s + 1) * sign * grid value. Plane 0: 7
// vectors a block: low bytes of eight indices a group (words 0..15), their upper bits, a byte a group
// (16, 17), a word of signs a group (18..25), eight s of 4 bits (26), d (f16) and padding (27). Plane
// 1: the grid of 512 points of 4.
//! include codec/planes.wgsl
//! include codec/signed_group.wgsl
//! include codec/grid.wgsl

fn load_group(row: u32, group: u32) -> Group {
  let block = (row * (GROUPS / 8u) + group / 8u) * 7u;
  let j = group % 8u;
  let both = weights[block + j / 2u];
  let q = select(both.xy, both.zw, (j & 1u) == 1u);
  let upper = weights[block + 4u][j / 4u] >> (8u * (j & 3u));
  let signs = weights[block + (18u + j) / 4u][(18u + j) & 3u];
  let tail = weights[block + 6u];
  let d = unpack2x16float(tail.w).x * f32(((tail.z >> (4u * j)) & 15u) * 2u + 1u);
  let a = points4((q.x & 255u) | ((upper & 1u) << 8u), ((q.x >> 8u) & 255u) | ((upper & 2u) << 7u), signs);
  let b = points4(((q.x >> 16u) & 255u) | ((upper & 4u) << 6u), (q.x >> 24u) | ((upper & 8u) << 5u),
                  signs >> 8u);
  let c = points4((q.y & 255u) | ((upper & 16u) << 4u), ((q.y >> 8u) & 255u) | ((upper & 32u) << 3u),
                  signs >> 16u);
  let e = points4(((q.y >> 16u) & 255u) | ((upper & 64u) << 2u), (q.y >> 24u) | ((upper & 128u) << 1u),
                  signs >> 24u);
  return Group(vec4<u32>(a, b), vec4<u32>(c, e), d);
}
