//! include lib/twice.wgsl
//! include lib/more.wgsl
//! params Params
struct Params {
  add: u32,  // of the dispatch
  count: u32,
}
struct Scale { factor: u32, a: u32, b: u32, c: u32 }

@group(0) @binding(0) var<storage, read> source: array<u32>;
@group(0) @binding(1) var<storage, read_write> result: array<u32>;
@group(0) @binding(2) var<uniform> scale: Scale;

@compute @workgroup_size(WORKGROUP_X)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x >= params.count) { return; }
  result[id.x] = scale.factor * twice(source[id.x]) + more(params.add) + OFFSET;
}
