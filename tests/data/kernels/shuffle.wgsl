@group(0) @binding(0) var<storage, read_write> value: array<u32>;
@compute @workgroup_size(WORKGROUP_X)
fn main(@builtin(local_invocation_index) i: u32, @builtin(subgroup_invocation_id) lane: u32) {
  value[i] = subgroupShuffleXor(lane, 1u) + 100u * SUBGROUP_MIN_SIZE;
}
