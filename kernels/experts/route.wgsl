// The TOP_K experts of a row: those of the largest choice, the lower number where two are equal.
// choice = score + bias; scores are a softmax or sigmoids of the logits. A choice is kept as a key that
// sorts as the number does; a NaN counts as the least, so that the numbers are valid and differ
// whatever the logits are. Includes: lib/reduce_*. Dispatch: y over rows.
//! include lib/step.wgsl
@group(0) @binding(1) var<storage, read_write> out: array<f32>;  // [row][TOP_K numbers, TOP_K weights]
@group(0) @binding(2) var<storage, read> logits: array<f32>;
@group(0) @binding(3) var<storage, read> bias: array<f32>;           // used with BIAS
@group(0) @binding(4) var<storage, read> expert_scales: array<f32>;  // used with EXPERT_SCALES

const OCTETS = WORKGROUP_X / 8u;
const GROUP_SIZE = EXPERTS / NUM_GROUPS;

const kNone = 0u;  // the key of an expert that is chosen already, or not to be
const kNan = 1u;

var<workgroup> keys: array<u32, EXPERTS>;
var<workgroup> group_keys: array<u32, NUM_GROUPS>;
var<workgroup> octet_keys: array<u32, OCTETS>;
var<workgroup> chosen: array<u32, TOP_K>;
var<workgroup> chosen_scores: array<f32, TOP_K>;

fn key_of(v: f32) -> u32 {
  let bits = bitcast<u32>(v);
  if ((bits & 0x7fffffffu) > 0x7f800000u) {
    return kNan;
  }
  return select(bits | 0x80000000u, ~bits, bits >= 0x80000000u);
}

fn value_of(key: u32) -> f32 {
  return bitcast<f32>(select(~key, key & 0x7fffffffu, key >= 0x80000000u));
}

fn better(a: vec2<u32>, b: vec2<u32>) -> bool {  // (key, number)
  return a.x > b.x || (a.x == b.x && a.y < b.y);
}

// The largest logit's key. All invocations call.
fn largest_key(row: u32, lid: u32) -> u32 {
  var key = kNone;
  for (var e = lid; e < EXPERTS; e = e + WORKGROUP_X) {
    key = max(key, key_of(logits[row + e]));
  }
  key = octet_max(key, lid);
  if (lid % 8u == 0u) {
    octet_keys[lid / 8u] = key;
  }
  workgroupBarrier();
  for (var i = 0u; i < OCTETS; i = i + 1u) {
    key = max(key, octet_keys[i]);
  }
  return key;
}

// Takes the experts of all but the best groups out.
fn keep_groups(lid: u32) {
  workgroupBarrier();
  for (var g = lid; g < NUM_GROUPS; g = g + WORKGROUP_X) {
    var first = kNone;
    var second = kNone;
    for (var e = g * GROUP_SIZE; e < (g + 1u) * GROUP_SIZE; e = e + 1u) {
      second = max(second, min(first, keys[e]));
      first = max(first, keys[e]);
    }
    if (BEST_TWO && GROUP_SIZE > 1u) {
      first = select(key_of(value_of(first) + value_of(second)), kNan, second == kNan);
    }
    group_keys[g] = first;
  }
  workgroupBarrier();
  for (var g = lid; g < NUM_GROUPS; g = g + WORKGROUP_X) {
    let own = vec2<u32>(group_keys[g], g);
    var ahead = 0u;
    for (var other = 0u; other < NUM_GROUPS; other = other + 1u) {
      ahead = ahead + select(0u, 1u, better(vec2<u32>(group_keys[other], other), own));
    }
    if (ahead >= TOP_GROUPS) {
      for (var e = g * GROUP_SIZE; e < (g + 1u) * GROUP_SIZE; e = e + 1u) {
        keys[e] = kNone;
      }
    }
  }
  workgroupBarrier();
}

@compute @workgroup_size(WORKGROUP_X)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
  let row = wid.y * LOGITS_STRIDE;
  var top = 0.0;
  var sum = 1.0;
  if (SOFTMAX) {
    top = value_of(largest_key(row, lid));
    var part = 0.0;
    for (var e = lid; e < EXPERTS; e = e + WORKGROUP_X) {
      part = part + exp(logits[row + e] - top);
    }
    sum = workgroup_sum(part, lid);
  }
  for (var e = lid; e < EXPERTS; e = e + WORKGROUP_X) {
    var choice = score(logits[row + e], top, sum);
    if (BIAS) {
      choice = choice + bias[e];
    }
    keys[e] = key_of(choice);
  }
  if (NUM_GROUPS > 1u) {
    keep_groups(lid);
  }
  workgroupBarrier();
  // An expert's place is the number of better ones, which an octet counts.
  for (var first = 0u; first < EXPERTS; first = first + OCTETS) {
    let e = first + lid / 8u;
    let own = vec2<u32>(keys[min(e, EXPERTS - 1u)], e);
    var better_ones = 0;
    for (var other = lid % 8u; other < EXPERTS; other = other + 8u) {
      better_ones = better_ones + select(0, 1, better(vec2<u32>(keys[other], other), own));
    }
    let place = u32(octet_sum(better_ones, lid));
    if (e < EXPERTS && place < TOP_K && lid % 8u == 0u) {
      chosen[place] = e;
      chosen_scores[place] = score(logits[row + e], top, sum);
    }
  }
  workgroupBarrier();
  var total = 0.0;
  for (var s = 0u; s < TOP_K; s = s + 1u) {
    total = total + chosen_scores[s];
  }
  if (lid < TOP_K) {
    let number = chosen[lid];
    var weight = chosen_scores[lid];
    if (EXPERT_SCALES) {
      weight = weight * expert_scales[number];
    }
    out[wid.y * OUT_STRIDE + lid] = f32(number);
    out[wid.y * OUT_STRIDE + TOP_K + lid] = weight * select(SCALE, SCALE / total, NORMALISE);
  }
}

fn score(logit: f32, top: f32, sum: f32) -> f32 {
  if (SOFTMAX) {
    return exp(logit - top) / sum;
  }
  return 1.0 / (1.0 + exp(-logit));
}
