//! params Params
struct Params { value: u32 }
@group(0) @binding(0) var<storage, read_write> value: array<u32>;
@compute @workgroup_size(WORKGROUP_X)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x < arrayLength(&value)) { value[id.x] = params.value + id.x; }
}
