// Tells the subgroup sizes that the driver uses for workgroups of this size.
@group(0) @binding(0) var<storage, read_write> sizes: array<atomic<u32>, 2>;  // least, greatest

@compute @workgroup_size(WORKGROUP_X)
fn main(@builtin(subgroup_size) size: u32) {
  atomicMin(&sizes[0], size);
  atomicMax(&sizes[1], size);
}
