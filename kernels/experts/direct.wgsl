// Tiles of an ExpertLinear with one item: y over columns, z over the experts chosen for each.
fn tile_items(wid: vec3<u32>) -> u32 {
  return 1u;
}

fn tile_expert(wid: vec3<u32>) -> u32 {
  if (!ROUTED) {
    return wid.z;
  }
  return u32(routes[wid.y * ROUTES_STRIDE + wid.z]);
}

fn tile_item(wid: vec3<u32>, c: u32) -> Item {
  return Item(wid.y, wid.z);
}
