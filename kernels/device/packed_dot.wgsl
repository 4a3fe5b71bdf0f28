// Compiles where packed integer dot products are supported; checked on known values.
@group(0) @binding(0) var<storage, read_write> data: array<u32>;  // a, b, sum

@compute @workgroup_size(1)
fn main() {
  data[2] = u32(dot4I8Packed(data[0], data[1]));
}
