// Copies rows of a state. Dispatch: x over vectors of 4 of a row, y over copies.
@group(0) @binding(0) var<storage, read> state_copies: array<vec2<u32>>;  // from, to
@group(0) @binding(1) var<storage, read_write> states: array<vec4<f32>>;

@compute @workgroup_size(WORKGROUP_X)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
  let i = wid.x * WORKGROUP_X + lid;
  if (i >= VECTORS) {
    return;
  }
  let copy = state_copies[wid.y];
  states[copy.y * VECTORS + i] = states[copy.x * VECTORS + i];
}
