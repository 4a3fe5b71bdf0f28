// The best logit of each row from those of its chunks is the token of a greedy row, and where
// others start. Dispatch: y over rows.
//! include sample/store.wgsl
//! include sample/best.wgsl
@group(0) @binding(5) var<storage, read> chunk_bests: array<vec4<u32>>;
@group(0) @binding(6) var<storage, read> sampling: array<RowSampling>;           // by logit row
@group(0) @binding(7) var<storage, read_write> selections: array<Selection>;  // [row][SELECTIONS]
@group(0) @binding(8) var<storage, read_write> histograms: array<u32>;        // as in select.wgsl

@compute @workgroup_size(WORKGROUP_X)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
  var mine = NONE;
  for (var i = lid; i < params.chunks; i = i + WORKGROUP_X) {
    mine = better(mine, chunk_bests[wid.y * params.chunks + i].xyz);
  }
  let best = best_of_all(mine, lid);
  if (lid == 0u) {
    store_token(wid.y, min(best.y, params.width - 1u), 1u - best.z);
  }
  if (step_info.sampling == 0u) {
    return;
  }
  if (lid == 0u) {
    selections[wid.y * SELECTIONS].key = best.x;
  }
  if (sampling[step_info.first_logit + wid.y].level >= 2u) {  // the first histogram starts from 0
    for (var i = lid; i < HISTOGRAM; i = i + WORKGROUP_X) {
      histograms[wid.y * STAGES * HISTOGRAM + i] = 0u;
    }
  }
}
