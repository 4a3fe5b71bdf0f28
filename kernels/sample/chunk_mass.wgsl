// What the cuts leave in each chunk of a row: how many tokens have the key of the cut itself, and
// the mass, at the row's temperature, of those with better keys. Dispatch: x over chunks, y over
// rows.
//! include lib/step.wgsl
//! include sample/select.wgsl
@group(0) @binding(3) var<storage, read> sampling: array<RowSampling>;             // by logit row
@group(0) @binding(4) var<storage, read> logits: array<u32>;                       // bits of f32
@group(0) @binding(5) var<storage, read_write> chunk_masses: array<vec4<u32>>;  // [row][chunk]

// The least n with n * one >= wanted.
fn least_count(wanted: vec2<u32>, one: u32) -> u32 {
  var n = 0u;
  for (var bit = 0x80000000u; bit > 0u; bit = bit >> 1u) {
    if (less64(multiply(n | bit, one), wanted)) {
      n = n | bit;
    }
  }
  return n + 1u;
}

@compute @workgroup_size(WORKGROUP_X)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
  let row = wid.y;
  let how = sampling[step_info.first_logit + row];
  if (how.level == 0u) {
    return;
  }
  let best = logit_of(selections[row * SELECTIONS].key);
  var cut = 0xffffffffu;
  var ties = 0xffffffffu;
  if (how.level >= 2u) {
    let s = selection_at(select(SECOND_CUT, STAGES, how.level == 3u), row, how, best, lid);
    cut = s.key;
    ties = s.count;
    if (ties == 0u) {
      ties = least_count(s.mass, mass_at_1(best, logit_of(cut)));
    }
  }
  if (how.min_p <= 0.0) {
    let least = key_of(bitcast<u32>(best + how.min_p));
    if (least < cut) {
      cut = least;
      ties = 0xffffffffu;
    }
  }
  if (wid.x == 0u && lid == 0u) {
    selections[row * SELECTIONS + CUT] = Selection(cut, ties, vec2<u32>(), vec2<u32>());
  }
  var sum = vec3<u32>();
  let end = min((wid.x + 1u) * CHUNK, params.width);
  for (var i = wid.x * CHUNK + lid; i < end; i = i + WORKGROUP_X) {
    let bits = logits[row * params.stride + i];
    let key = key_of(bits);
    if (key == cut) {
      sum.x = sum.x + 1u;
    } else if (key < cut) {
      let one = mass(best, bitcast<f32>(bits), how.scale, how.limit);
      sum = add_counted(sum, vec3<u32>(0u, one, 0u));
    }
  }
  let total = running_sum(sum, lid).all;
  if (lid == 0u) {
    chunk_masses[row * params.chunks + wid.x] = vec4<u32>(total, 0u);
  }
}
