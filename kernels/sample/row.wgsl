// What the kernels of Sample share: how a row chooses, how far its selection is, and logits as keys
// and masses (src/backend/sampling.h says what masses are; the numbers here are the same).
//! include sample/sums.wgsl
//! params Shape
struct Shape {
  width: u32,   // of a row of logits
  stride: u32,  // from row to row
  chunks: u32,  // of a row
  stage: u32,   // of the histogram
}

struct RowSampling {
  level: u32,   // 0: greedy; 1: drawn from all; 2: after top-k or top-p; 3: after both
  top_k: u32,   // 0: off
  top_p: u32,   // in units of 2^-32, where top-k is off or the level 3
  min_p: f32,   // offset from the best logit to the least one that stays; above 0: off
  scale: f32,   // of masses at the row's temperature
  limit: f32,
  random: u32,  // in units of 2^-32
}

// Where a cut lies in the order of keys, as known after some of its digits.
struct Selection {
  key: u32,          // the digits found so far
  count: u32,        // tokens that stay among those with these digits; 0: it is a cut by mass,
  mass: vec2<u32>,   // which has to be reached among them
  above: vec2<u32>,  // mass of all better keys
}
// Entries of a row: 0 has the key of the best logit; 1..6 what histogram.wgsl knows at that stage;
// the last one is the final cut: tokens of better keys stay, and of equal ones the first `count`.
const STAGES = 7u;
const HISTOGRAM = 768u;  // words of one: [3][256]
const SELECTIONS = 8u;
const CUT = 7u;

// Better logits have smaller keys; -0 and +0 the same.
fn key_of(bits: u32) -> u32 {
  if ((bits & 0x7fffffffu) == 0u) {
    return 0x7fffffffu;
  }
  return select(~bits & 0x7fffffffu, bits, bits >= 0x80000000u);
}

fn logit_of(key: u32) -> f32 {
  return bitcast<f32>(select(~key & 0x7fffffffu, key, key >= 0x80000000u));
}

fn mass(best: f32, logit: f32, scale: f32, limit: f32) -> u32 {
  let exponent = u32(min(0.5 * best - 0.5 * logit, limit) * scale);  // 8.24
  let f = exponent << 8u;
  var sum = 0x00078809u;
  sum = 0x0054a612u - multiply(f, sum).y;
  sum = 0x0274f388u - multiply(f, sum).y;
  sum = 0x0e353290u - multiply(f, sum).y;
  sum = 0x3d7f7506u - multiply(f, sum).y;
  sum = 0xb17217dfu - multiply(f, sum).y;
  let fraction = 0x80000000u - ((multiply(f, sum).y + 1u) >> 1u);
  let shift = exponent >> 24u;
  if (shift >= 32u) {
    return 0u;
  }
  return (fraction + ((1u << shift) >> 1u)) >> shift;
}

fn mass_at_1(best: f32, logit: f32) -> u32 {
  return mass(best, logit, SCALE_AT_1, LIMIT_AT_1);
}
