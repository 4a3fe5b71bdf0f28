// Draws the token of a row that is not greedy: the first one at which the running sum of masses, in
// order of ids over what the cuts left, is above the random share of all. Dispatch: y over rows.
//! include sample/store.wgsl
//! include sample/row.wgsl
@group(0) @binding(5) var<storage, read> sampling: array<RowSampling>;      // by logit row
@group(0) @binding(6) var<storage, read> selections: array<Selection>;      // [row][SELECTIONS]
@group(0) @binding(7) var<storage, read> chunk_masses: array<vec4<u32>>;    // [row][chunk]
@group(0) @binding(8) var<storage, read> logits: array<u32>;                // bits of f32

const ALL_CHUNKS = 0xffffffffu;

// An item of a list (all chunks, or the tokens of one) and what is left for it and those after it:
// of the tokens at the cut, and of the mass drawn.
struct Place {
  item: u32,
  ties: u32,
  drawn: vec2<u32>,
}
var<workgroup> place: Place;

struct Row {
  index: u32,  // in this pass
  best: f32,
  cut: u32,
  tie_mass: u32,
  how: RowSampling,
}

// How many tokens at the cut an item has, and the mass of its better ones.
fn load_item(row: Row, chunk: u32, item: u32) -> vec3<u32> {
  if (chunk == ALL_CHUNKS) {
    if (item >= params.chunks) {
      return vec3<u32>();
    }
    return chunk_masses[row.index * params.chunks + item].xyz;
  }
  let token = chunk * CHUNK + item;
  if (token >= params.width) {
    return vec3<u32>();
  }
  let bits = logits[row.index * params.stride + token];
  let key = key_of(bits);
  let one = mass(row.best, bitcast<f32>(bits), row.how.scale, row.how.limit);
  return vec3<u32>(select(0u, 1u, key == row.cut), select(0u, one, key < row.cut), 0u);
}

// The mass of an item of which `kept` tokens at the cut stay.
fn mass_with(row: Row, item: vec3<u32>, kept: u32) -> vec2<u32> {
  return add64(item.yz, multiply(kept, row.tie_mass));
}

// The item of the list in which the drawn mass lies. The list of all chunks knows the total, so there
// the draw is made. All invocations must call.
fn find_item(row: Row, chunk: u32, before: Place, lid: u32) -> Place {
  let items = select(CHUNK, params.chunks, chunk == ALL_CHUNKS);
  let each = (items + WORKGROUP_X - 1u) / WORKGROUP_X;
  let first = lid * each;
  var ties = 0u;
  for (var i = 0u; i < each; i = i + 1u) {
    ties = ties + load_item(row, chunk, first + i).x;
  }
  let ties_before = running_sum(vec3<u32>(ties, 0u, 0u), lid).here.x - ties;
  var here = Place(first, before.ties - min(before.ties, ties_before), before.drawn);
  var left = here.ties;
  var sum = vec2<u32>();
  for (var i = 0u; i < each; i = i + 1u) {
    let item = load_item(row, chunk, first + i);
    let kept = min(left, item.x);
    left = left - kept;
    sum = add64(sum, mass_with(row, item, kept));
  }
  let end = running_sum(vec3<u32>(0u, sum), lid);
  if (chunk == ALL_CHUNKS) {
    here.drawn = scaled64(end.all.yz, row.how.random);
  }
  let start = subtract64(end.here.yz, sum);
  if (!less64(here.drawn, start) && less64(here.drawn, end.here.yz)) {
    here.drawn = subtract64(here.drawn, start);
    for (var i = 0u; i < each; i = i + 1u) {
      let item = load_item(row, chunk, first + i);
      let kept = min(here.ties, item.x);
      let whole = mass_with(row, item, kept);
      if (less64(here.drawn, whole)) {
        break;
      }
      here = Place(here.item + 1u, here.ties - kept, subtract64(here.drawn, whole));
    }
    place = here;
  }
  workgroupBarrier();
  return place;
}

@compute @workgroup_size(WORKGROUP_X)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
  let how = sampling[step_info.first_logit + wid.y];
  if (how.level == 0u) {
    return;
  }
  let best = logit_of(selections[wid.y * SELECTIONS].key);
  let cut = selections[wid.y * SELECTIONS + CUT];
  let row = Row(wid.y, best, cut.key, mass(best, logit_of(cut.key), how.scale, how.limit), how);
  var at = Place(0u, cut.count, vec2<u32>());
  var chunk = ALL_CHUNKS;
  for (var turn = 0u; turn < 2u + step_info.zero; turn = turn + 1u) {
    if (turn == 1u) {
      chunk = min(at.item, params.chunks - 1u);
    }
    at = find_item(row, chunk, at, lid);
  }
  // A row that is not finite keeps the token that it has.
  if (lid == 0u && results[step_info.first_logit + wid.y].y != 0u) {
    store_token(wid.y, min(chunk * CHUNK + at.item, params.width - 1u), 1u);
  }
}
