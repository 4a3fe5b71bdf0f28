// What the kernels of Conv share: its inputs and its results, of vector i of a column's channels.
//! include lib/step.wgsl
//! include lib/activation.wgsl
@group(0) @binding(2) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> conv_weight: array<vec4<f32>>;  // [TAPS][VECTORS]
@group(0) @binding(4) var<storage, read> conv_bias: array<vec4<f32>>;

// A state keeps BEFORE = TAPS - 1 inputs, oldest first: [slot][BEFORE][VECTORS].
fn state_at(slot: u32, t: u32, i: u32) -> u32 {
  return (slot * BEFORE + t) * VECTORS + i;
}

fn input_at(column: u32, i: u32) -> vec4<f32> {
  let row = column * X_STRIDE4 + i;
  if (IN_GATED) {
    return x[row + X_OFFSET4] * x[row + IN_GATE4];
  }
  return x[row + X_OFFSET4];
}

fn bias_at(i: u32) -> vec4<f32> {
  if (BIAS) {
    return conv_bias[i];
  }
  return vec4<f32>();
}

fn result_of(sum: vec4<f32>, column: u32, i: u32) -> vec4<f32> {
  var v = sum;
  if (ACTIVATED) {
    v = vec4<f32>(activate(v.x), activate(v.y), activate(v.z), activate(v.w));
  }
  if (OUT_GATED) {
    v = v * x[column * X_STRIDE4 + OUT_GATE4 + i];
  }
  return v;
}
