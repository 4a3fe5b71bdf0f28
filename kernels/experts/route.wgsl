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
var<workgroup> bests: array<vec2<u32>, 2u * OCTETS>;  // of each octet, for even and odd rounds
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

// The best (key, number) of the workgroup's. All invocations call, with `round` one more each time.
fn best_of_all(own: vec2<u32>, round: u32, lid: u32) -> vec2<u32> {
  let key = octet_max(own.x, lid);
  let number = ~octet_max(select(0u, ~own.y, own.x == key), lid);
  let first = round % 2u * OCTETS;
  if (lid % 8u == 0u) {
    bests[first + lid / 8u] = vec2<u32>(key, number);
  }
  workgroupBarrier();
  var best = bests[first];
  for (var i = 1u; i < OCTETS; i = i + 1u) {
    let other = bests[first + i];
    if (better(other, best)) {
      best = other;
    }
  }
  return best;
}

// Of the experts that this invocation keeps: lid, lid + WORKGROUP_X, ...
fn best_of_own(lid: u32) -> vec2<u32> {
  var best = vec2<u32>(kNone, 0xffffffffu);
  for (var e = lid; e < EXPERTS; e = e + WORKGROUP_X) {
    let key = keys[e];
    if (key > best.x) {
      best = vec2<u32>(key, e);
    }
  }
  return best;
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
    var own = vec2<u32>(kNone, 0xffffffffu);
    for (var e = lid; e < EXPERTS; e = e + WORKGROUP_X) {
      own.x = max(own.x, key_of(logits[row + e]));
    }
    top = value_of(best_of_all(own, 1u, lid).x);
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
  var own = best_of_own(lid);
  var number = 0u;  // of the chosen expert `lid`
  for (var s = 0u; s < TOP_K; s = s + 1u) {
    let best = best_of_all(own, s, lid);
    if (best.y % WORKGROUP_X == lid) {
      keys[best.y] = kNone;
      own = best_of_own(lid);
    }
    number = select(number, best.y, s == lid);
  }
  var weight = 0.0;
  if (lid < TOP_K) {
    weight = score(logits[row + number], top, sum);
    chosen_scores[lid] = weight;
  }
  workgroupBarrier();
  var total = 0.0;
  for (var s = 0u; s < TOP_K; s = s + 1u) {
    total = total + chosen_scores[s];
  }
  if (lid < TOP_K) {
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
