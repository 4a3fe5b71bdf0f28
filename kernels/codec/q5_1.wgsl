// Q5_1: blocks of 32 values d * q + m. Plane 0: as Q5_0; plane 1: d and m (f16), then the upper bits.
//! include codec/planes.wgsl
//! include codec/min_group.wgsl
//! include codec/spread.wgsl

fn load_group(row: u32, group: u32) -> Group {
  let i = row * GROUPS + group;
  let q = weights[i];
  let dm = unpack2x16float(weight_side[i * 2u]);
  let upper = weight_side[i * 2u + 1u];
  return Group(low_fives(q, upper), high_fives(q, upper), dm.x, -dm.y);
}
