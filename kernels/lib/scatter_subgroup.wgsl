// Lane l of an octet gets the sum of its lanes' v[l], added as octet_sum_f32 does.
fn octet_scatter(v: array<f32, 8>, lid: u32) -> f32 {
  let up4 = (lid & 4u) != 0u;
  let up2 = (lid & 2u) != 0u;
  let up1 = (lid & 1u) != 0u;
  let low = vec4<f32>(v[0], v[1], v[2], v[3]);
  let high = vec4<f32>(v[4], v[5], v[6], v[7]);
  let four = select(low, high, up4) + subgroupShuffleXor(select(high, low, up4), 4u);
  let two = select(four.xy, four.zw, up2) + subgroupShuffleXor(select(four.zw, four.xy, up2), 2u);
  return select(two.x, two.y, up1) + subgroupShuffleXor(select(two.y, two.x, up1), 1u);
}
