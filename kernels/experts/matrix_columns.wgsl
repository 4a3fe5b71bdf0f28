// Tiles of linear_prefill_matrix.wgsl for an ExpertLinear: 128 rows of an expert's matrix, items of that
// expert. A column of x has ITEM_ROWS rows of inputs: one for all its items, or TOP_K.
//! include experts/rows.wgsl
//! include experts/grouped.wgsl

// How many of the tile's columns there are.
fn tile_columns(wid: vec3<u32>) -> u32 {
  return tile_items(wid);
}

// The rows of the weights and of x that are row `r` and column `c` of the tile; any beyond the end.
fn weight_row(wid: vec3<u32>, r: u32) -> u32 {
  return part_row(tile_expert(wid), wid.x * 128u + r);
}

fn input_row(wid: vec3<u32>, c: u32) -> u32 {
  let item = tile_item(wid, c);
  if (ITEM_ROWS == 1u) {
    return item.column;
  }
  return item.column * ITEM_ROWS + item.slot;
}

fn put(wid: vec3<u32>, r: u32, c: u32, sum: f32) {
  let expert = tile_expert(wid);
  let row = wid.x * 128u + r;
  if (has_row(expert, row)) {
    store(tile_item(wid, c), expert, row, sum);
  }
}
