// out = act(x[:, :WIDTH]) * x[:, WIDTH:]. Includes: out/* (with lib/reduce_* for q8).
// Dispatch: x over vectors of 4, y over rows.
//! include lib/step.wgsl
//! include lib/activation.wgsl
@group(0) @binding(2) var<storage, read> x: array<f32>;

@compute @workgroup_size(WORKGROUP_X)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
  let i = wid.x * WORKGROUP_X + lid;
  let valid = i * 4u < WIDTH;
  var v = vec4<f32>();
  if (valid) {
    // A width that 4 does not divide ends in elements of padding, which nothing reads.
    let gate = wid.y * X_STRIDE + i * 4u;
    let up = gate + WIDTH;
    v = vec4<f32>(activate(x[gate]), activate(x[gate + 1u]), activate(x[gate + 2u]),
                  activate(x[gate + 3u])) *
        vec4<f32>(x[up], x[up + 1u], x[up + 2u], x[up + 3u]);
  }
  emit(wid.y, i, v, valid, lid);
}
