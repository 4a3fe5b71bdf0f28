// Tiles of an ExpertLinear with up to COL_TILE items of one expert: y over the tiles that
// experts/group.wgsl made.
@group(0) @binding(7) var<storage, read> expert_tiles: array<vec4<u32>>;  // expert, first item, items, 0
@group(0) @binding(8) var<storage, read> expert_items: array<u32>;        // column * TOP_K + slot

fn tile_items(wid: vec3<u32>) -> u32 {
  return expert_tiles[wid.y].z;
}

fn tile_expert(wid: vec3<u32>) -> u32 {
  return expert_tiles[wid.y].x;
}

// The last one again where the tile has fewer.
fn tile_item(wid: vec3<u32>, c: u32) -> Item {
  let tile = expert_tiles[wid.y];
  let item = expert_items[tile.y + min(c, max(tile.z, 1u) - 1u)];
  return Item(item / TOP_K, item % TOP_K);
}
