// Finding a cut by radix selection: the digits of 8 bits of its key one after the other, each from
// a histogram of the tokens that have the digits before it. WORKGROUP_X is 256, a bin each.
//! include sample/row.wgsl
@group(0) @binding(1) var<storage, read_write> selections: array<Selection>;    // [row][SELECTIONS]
@group(0) @binding(2) var<storage, read_write> histograms: array<atomic<u32>>;  // [row][STAGES][3][256]

// Stages 0..3 are the digits of the first cut; those from SECOND_CUT on are the digits of top-p after
// top-k but the first, which is in stage 0. A histogram has counts, then low and high words of masses
// at temperature 1.
const SECOND_CUT = 4u;

var<workgroup> found: Selection;

fn histogram_at(row: u32, stage: u32) -> u32 {
  return (row * STAGES + stage) * HISTOGRAM;
}

fn load_bin(row: u32, stage: u32, bin: u32) -> vec3<u32> {
  let at = histogram_at(row, stage) + bin;
  return vec3<u32>(atomicLoad(&histograms[at]), atomicLoad(&histograms[at + 256u]),
                   atomicLoad(&histograms[at + 512u]));
}

// One more digit, by the histogram of `stage`. All invocations must call.
fn descend(goal: Selection, row: u32, stage: u32, how: RowSampling, lid: u32) -> Selection {
  var s = goal;
  let bin = load_bin(row, stage, lid);
  let end = running_sum(bin, lid);
  if (stage == 0u && how.level == 2u) {  // only now the mass of all tokens is known
    s.mass = share_of(end.all.yz, how.top_p);
  }
  let start = vec3<u32>(end.here.x - bin.x, subtract64(end.here.yz, bin.yz));
  let here = select(start.x < s.count && s.count <= end.here.x,
                    less64(start.yz, s.mass) && !less64(end.here.yz, s.mass), s.count == 0u);
  if (here) {
    found = Selection((s.key << 8u) | lid, s.count - min(s.count, start.x),
                      subtract64(s.mass, start.yz), add64(s.above, start.yz));
  }
  workgroupBarrier();
  return found;
}

// What the histograms before `stage` tell. All invocations must call.
fn selection_at(stage: u32, row: u32, how: RowSampling, best: f32, lid: u32) -> Selection {
  var s = Selection(0u, how.top_k, vec2<u32>(), vec2<u32>());
  if (stage > 1u) {
    s = selections[row * SELECTIONS + stage - 1u];
  }
  // The first digit of top-p after top-k is looked for as soon as the last one of top-k is known.
  let two = stage == SECOND_CUT && how.level == 3u;
  for (var turn = select(1u, 0u, two); turn < 2u && stage > 0u; turn = turn + 1u) {
    if (two && turn == 1u) {
      let ties = multiply(s.count, mass_at_1(best, logit_of(s.key)));
      s = Selection(0u, 0u, share_of(add64(s.above, ties), how.top_p), vec2<u32>());
    }
    s = descend(s, row, select(stage - 1u, 0u, two && turn == 1u), how, lid);
  }
  return s;
}
