// The histogram of one digit of the keys that are still in question (select.wgsl). Every workgroup
// finds out by itself which ones these are. Dispatch: x over chunks, y over rows.
//! include lib/step.wgsl
//! include sample/select.wgsl
@group(0) @binding(3) var<storage, read> sampling: array<RowSampling>;  // by logit row
@group(0) @binding(4) var<storage, read> logits: array<u32>;            // bits of f32

var<workgroup> counts: array<atomic<u32>, 256>;
var<workgroup> lows: array<atomic<u32>, 256>;   // sums of the lower and upper 16 bits of masses
var<workgroup> highs: array<atomic<u32>, 256>;

@compute @workgroup_size(WORKGROUP_X)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
  let row = wid.y;
  let stage = params.stage;
  let how = sampling[step_info.first_logit + row];
  if (how.level < select(2u, 3u, stage >= SECOND_CUT)) {
    return;
  }
  atomicStore(&counts[lid], 0u);
  atomicStore(&lows[lid], 0u);
  atomicStore(&highs[lid], 0u);
  let best = logit_of(selections[row * SELECTIONS].key);
  let s = selection_at(stage, row, how, best, lid);
  let mine = histogram_at(row, stage) + lid;
  if (wid.x == 0u) {
    if (stage > 0u && lid == 0u) {
      selections[row * SELECTIONS + stage] = s;
    }
    if (stage + 1u < STAGES) {  // the next histogram starts from 0, as best_row.wgsl did with the first
      atomicStore(&histograms[mine + HISTOGRAM], 0u);
      atomicStore(&histograms[mine + HISTOGRAM + 256u], 0u);
      atomicStore(&histograms[mine + HISTOGRAM + 512u], 0u);
    }
  }
  workgroupBarrier();
  let shift = 24u - 8u * select(stage, stage - 3u, stage >= SECOND_CUT);
  let with_masses = how.top_k == 0u || how.level == 3u;
  let end = min((wid.x + 1u) * CHUNK, params.width);
  for (var i = wid.x * CHUNK + lid; i < end; i = i + WORKGROUP_X) {
    let bits = logits[row * params.stride + i];
    let digits = key_of(bits) >> shift;
    if (stage == 0u || digits >> 8u == s.key) {
      let bin = digits & 255u;
      atomicAdd(&counts[bin], 1u);
      if (with_masses) {
        let one = mass_at_1(best, bitcast<f32>(bits));
        atomicAdd(&lows[bin], one & 0xffffu);
        atomicAdd(&highs[bin], one >> 16u);
      }
    }
  }
  workgroupBarrier();
  let count = atomicLoad(&counts[lid]);
  if (count > 0u) {
    atomicAdd(&histograms[mine], count);
    let high = atomicLoad(&highs[lid]);
    let sum = add64(vec2<u32>(atomicLoad(&lows[lid]), 0u), vec2<u32>(high << 16u, high >> 16u));
    let low = atomicAdd(&histograms[mine + 256u], sum.x);
    atomicAdd(&histograms[mine + 512u], sum.y + select(0u, 1u, low + sum.x < low));
  }
}
