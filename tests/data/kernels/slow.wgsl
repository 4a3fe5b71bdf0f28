//! params Params
struct Params { rounds: u32 }
@group(0) @binding(0) var<storage, read_write> value: array<u32>;
@compute @workgroup_size(1)
fn main() {
  var x = value[0];
  for (var i = 0u; i < params.rounds; i++) { x = x * 1664525u + 1013904223u; }
  value[0] = x;
}
