// Eight sums over a team at once: lane l gets that of value l / (TEAM / 8), added as team_sum does.
// Values 0..3 are in `low`, 4..7 in `high`. Needs lib/reduce_subgroup.wgsl.
fn team_scatter(low: vec4<f32>, high: vec4<f32>, lid: u32) -> f32 {
  let up4 = (lid & (TEAM / 2u)) != 0u;
  let up2 = (lid & (TEAM / 4u)) != 0u;
  let up1 = (lid & (TEAM / 8u)) != 0u;
  let four =
      select(low, high, up4) + subgroupShuffleXor(select(high, low, up4), TEAM / 2u);
  let two = select(four.xy, four.zw, up2) +
            subgroupShuffleXor(select(four.zw, four.xy, up2), TEAM / 4u);
  var sum = select(two.x, two.y, up1) +
            subgroupShuffleXor(select(two.y, two.x, up1), TEAM / 8u);
  if (TEAM > 16u) {
    sum = sum + subgroupShuffleXor(sum, 2u);
  }
  if (TEAM > 8u) {
    sum = sum + subgroupShuffleXor(sum, 1u);
  }
  return sum;
}
