// Where a position of a slot lies in the pages [page][kv head][16 tokens][row]; PAGE_STRIDE is the
// length of a slot's row of the block table.
@group(0) @binding(3) var<storage, read> columns: array<vec4<u32>>;  // token, position, slot
@group(0) @binding(4) var<storage, read> block_table: array<u32>;

// Row index of (slot, position, KV head); a row has KEY_STRIDE or VALUE_STRIDE elements.
fn kv_row(slot: u32, position: u32, kv_head: u32) -> u32 {
  let page = block_table[slot * PAGE_STRIDE + position / 16u];
  return (page * KV_HEADS + kv_head) * 16u + position % 16u;
}
