// What the kernels of prompt attention on cooperative matrices share. The kernel declares kv_tile (rows
// of keys, in vectors of 4) and s_tile (f32). Includes: kv/read_*, out/*.
//! include lib/step.wgsl
//! include lib/to_halves.wgsl
//! include kv/pages.wgsl
//! include attention/score.wgsl
//! include attention/sink.wgsl
@group(0) @binding(2) var<storage, read> q: array<f32>;
@group(0) @binding(7) var<storage, read> tiles: array<vec4<u32>>;  // first column, columns
@group(0) @binding(8) var<storage, read> sinks: array<f32>;

const KEYS = 32u;     // positions of a tile
const S_PITCH = 36u;  // of a row of scores, and of one of weights in vectors of 4
const P_PITCH = 10u;
const LOWEST = -3.0e38;

// Eight elements, from 8 d on, of the row of `key`.
fn load_keys(slot: u32, kv_head: u32, key: u32, d: u32) -> EightBits {
  return key_bits(kv_row(slot, key, kv_head) * KEY_STRIDE + d * 8u);
}

// Stores eight elements of a row of keys or values, zeros where the row does not count.
fn put8(at: u32, bits: EightBits, counts: bool) {
  let v = eight(select_bits(bits, counts));
  kv_tile[at] = vec4<f16>(v.a);  // pages hold halves
  kv_tile[at + 1u] = vec4<f16>(v.b);
}

// Eight of the 16 values of each row. All invocations call.
fn write_values(s_from: u32, column: u32, to: u32, scale: f32, valid: bool, lid: u32) {
  workgroupBarrier();
  //! unroll i 2
  emit(column, to + $i, scale * vec4<f32>(s_tile[s_from + $i * 4u], s_tile[s_from + $i * 4u + 1u],
                                          s_tile[s_from + $i * 4u + 2u], s_tile[s_from + $i * 4u + 3u]),
       valid, lid);
  //! end
  workgroupBarrier();
}
