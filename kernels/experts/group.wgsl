// Sorts the items of a step by expert, into tiles of up to ITEM_TILE of one expert: each reads that
// expert's weights once. An item is column * TOP_K + slot. The order of an expert's items is left
// open: it changes no sum. Dispatch: one workgroup.
//! include lib/step.wgsl
@group(0) @binding(1) var<storage, read_write> expert_tiles: array<vec4<u32>>;  // experts/grouped
@group(0) @binding(2) var<storage, read_write> expert_items: array<u32>;
@group(0) @binding(3) var<storage, read> routes: array<f32>;  // [column][experts' numbers, weights]

const OWN = (EXPERTS + WORKGROUP_X - 1u) / WORKGROUP_X;  // experts of an invocation

var<workgroup> places: array<atomic<u32>, EXPERTS>;     // counts of items, then where the next one goes
var<workgroup> totals: array<vec2<u32>, WORKGROUP_X>;  // items and tiles of each invocation's experts

fn expert_of(item: u32) -> u32 {
  if (!ROUTED) {
    return item % TOP_K;
  }
  return u32(routes[item / TOP_K * ROUTES_STRIDE + item % TOP_K]);
}

@compute @workgroup_size(WORKGROUP_X)
fn main(@builtin(local_invocation_index) lid: u32) {
  let items = row_count() * TOP_K;
  for (var e = lid; e < EXPERTS; e = e + WORKGROUP_X) {
    atomicStore(&places[e], 0u);
  }
  workgroupBarrier();
  for (var i = lid; i < items; i = i + WORKGROUP_X) {
    atomicAdd(&places[expert_of(i)], 1u);
  }
  workgroupBarrier();
  let end = min((lid + 1u) * OWN, EXPERTS);
  var own = vec2<u32>();
  for (var e = lid * OWN; e < end; e = e + 1u) {
    let count = atomicLoad(&places[e]);
    own = own + vec2<u32>(count, (count + ITEM_TILE - 1u) / ITEM_TILE);
  }
  totals[lid] = own;
  workgroupBarrier();
  var at = vec2<u32>();  // the first item and tile of this invocation's
  var all_tiles = 0u;
  for (var other = 0u; other < WORKGROUP_X; other = other + 1u) {
    let total = totals[other];
    at = at + select(vec2<u32>(), total, other < lid);
    all_tiles = all_tiles + total.y;
  }
  for (var e = lid * OWN; e < end; e = e + 1u) {
    let count = atomicLoad(&places[e]);
    atomicStore(&places[e], at.x);
    for (var done = 0u; done < count; done = done + ITEM_TILE) {
      expert_tiles[at.y] = vec4<u32>(e, at.x + done, min(ITEM_TILE, count - done), 0u);
      at.y = at.y + 1u;
    }
    at.x = at.x + count;
  }
  // Workgroups beyond the last tile find no items.
  let dispatched = (items + ITEM_TILE - 1u) / ITEM_TILE + EXPERTS;
  for (var tile = all_tiles + lid; tile < dispatched; tile = tile + WORKGROUP_X) {
    expert_tiles[tile] = vec4<u32>();
  }
  workgroupBarrier();
  for (var i = lid; i < items; i = i + WORKGROUP_X) {
    expert_items[atomicAdd(&places[expert_of(i)], 1u)] = i;
  }
}
