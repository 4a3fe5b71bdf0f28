// out = CAP * tanh(x / CAP). Dispatch: x over vectors of 4, y over rows.
//! include lib/step.wgsl
//! include lib/nan.wgsl
@group(0) @binding(1) var<storage, read_write> out: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> x: array<vec4<f32>>;

@compute @workgroup_size(WORKGROUP_X)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
  let i = wid.x * WORKGROUP_X + lid;
  if (i < STRIDE4) {
    let v = x[wid.y * STRIDE4 + i];
    // Beyond 15 tanh is 1 in f32, and some devices overflow.
    let inner = clamp(v * (1.0 / CAP), vec4<f32>(-15.0), vec4<f32>(15.0));
    out[wid.y * STRIDE4 + i] = select(CAP * tanh(inner), v, is_nan4(v));
  }
}
