// Wkv: the columns of a run one after another, an invocation a channel, its state in registers.
// Dispatch: x over channels, y over runs.
//! include lib/step.wgsl
@group(0) @binding(1) var<storage, read_write> out: array<f32>;
@group(0) @binding(2) var<storage, read_write> states: array<f32>;  // [slot][a, b, p][CHANNELS]
@group(0) @binding(3) var<storage, read> k: array<f32>;
@group(0) @binding(4) var<storage, read> v: array<f32>;
@group(0) @binding(5) var<storage, read> rate: array<f32>;
@group(0) @binding(6) var<storage, read> first: array<f32>;
@group(0) @binding(7) var<storage, read> runs: array<vec4<u32>>;

const NOTHING = -1e38;  // the largest exponent of no values

// The larger one; a NaN as second stays.
fn larger(x: f32, y: f32) -> f32 {
  return select(y, x, x > y);
}

@compute @workgroup_size(WORKGROUP_X)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
  let i = wid.x * WORKGROUP_X + lid;
  if (i >= CHANNELS) {
    return;
  }
  let run = runs[wid.y];
  let state = run.z * STATE_STRIDE + i;
  var a = 0.0;
  var b = 0.0;
  var p = NOTHING;
  if (run.w > 0u) {
    a = states[state];
    b = states[state + CHANNELS];
    p = states[state + 2u * CHANNELS];
  }
  for (var c = run.x; c < run.x + run.y; c = c + 1u) {
    let key = k[c * STRIDE + i];
    let value = v[c * STRIDE + i];
    let w = first[i] + key;
    let now = larger(p, w);
    let old = exp(p - now);
    let own = exp(w - now);
    out[c * STRIDE + i] = fma(own, value, old * a) / fma(old, b, own);
    let next = larger(p + rate[i], key);
    let keep = exp(p + rate[i] - next);
    let add = exp(key - next);
    a = fma(add, value, keep * a);
    b = fma(keep, b, add);
    p = next;
  }
  states[state] = a;
  states[state + CHANNELS] = b;
  states[state + 2u * CHANNELS] = p;
}
