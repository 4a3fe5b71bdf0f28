// A group of weights as floats, rounded to halves with F16_INPUTS. Needs a codec.
//! include lib/half.wgsl

fn weight_floats(row: u32, group: u32) -> array<vec4<f32>, 8> {
  let w = group_floats(load_group(row, group));
  if (F16_INPUTS) {
    return array<vec4<f32>, 8>(half_round4(w[0]), half_round4(w[1]), half_round4(w[2]),
                               half_round4(w[3]), half_round4(w[4]), half_round4(w[5]),
                               half_round4(w[6]), half_round4(w[7]));
  }
  return w;
}
