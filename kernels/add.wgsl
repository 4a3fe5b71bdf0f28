// out = OUT_SCALE * (a + SCALE * b), where b repeats every B_STRIDE4 vectors. Dispatch: x over vectors
// of 4, y over rows.
//! include lib/step.wgsl
@group(0) @binding(1) var<storage, read_write> out: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> a: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> b: array<vec4<f32>>;

@compute @workgroup_size(WORKGROUP_X)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
  let i = wid.x * WORKGROUP_X + lid;
  if (i < STRIDE4) {
    let j = wid.y * STRIDE4 + i;
    out[j] = OUT_SCALE * fma(vec4<f32>(SCALE), b[wid.y * B_STRIDE4 + i % B_STRIDE4], a[j]);
  }
}
