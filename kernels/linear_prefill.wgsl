// Linear, prefill class: 64 rows of the matrix times TILE_COLS (32 or 64) columns a workgroup of 64
// invocations; each decodes one group of 32 weights a round into workgroup memory and sums 8 rows by
// TILE_COLS / 8 columns. Every sum runs over the elements in their order, whatever the tile.
// Includes: codec. Dispatch: x over rows, y over columns.
//! include lib/step.wgsl
//! include lib/x_f32.wgsl
//! include lib/weight_floats.wgsl
//! include lib/linear_out.wgsl
@group(0) @binding(6) var<storage, read> x: array<vec4<f32>>;

const PITCH = 9u;  // vectors of a row of 32 elements, and one against bank conflicts
const X_TILE = 64u * PITCH;

// The tiles of both factors, row by row (rows of the matrix permuted, see w_place); then the results,
// [column][row / 4].
var<workgroup> tile: array<vec4<f32>, (64u + TILE_COLS) * PITCH>;

// Rows 4 r + i of all r lie together, so that neighbouring invocations read without conflicts.
fn w_place(row: u32) -> u32 {
  return ((row % 4u) * 16u + row / 4u) * PITCH;
}

@compute @workgroup_size(WORKGROUP_X)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
  let rx = lid % 8u;  // rows 4 rx.. and 32 + 4 rx..
  let cx = lid / 8u;  // columns cx, cx + 8, ...
  let row0 = wid.x * 64u;
  let col0 = wid.y * TILE_COLS;
  let columns = row_count();
  var acc: array<vec4<f32>, TILE_COLS / 4u>;  // [column][rows 4 rx.., rows 32 + 4 rx..]
  for (var group = 0u; group < GROUPS; group = group + 1u) {
    let w = weight_floats(min(row0 + lid, ROWS - 1u), group);
    let at = w_place(lid);
    tile[at] = w[0];
    tile[at + 1u] = w[1];
    tile[at + 2u] = w[2];
    tile[at + 3u] = w[3];
    tile[at + 4u] = w[4];
    tile[at + 5u] = w[5];
    tile[at + 6u] = w[6];
    tile[at + 7u] = w[7];
    for (var part = lid; part < TILE_COLS * 8u + step_info.zero; part = part + WORKGROUP_X) {
      let column = part / 8u;
      tile[X_TILE + column * PITCH + part % 8u] =
          load_x4(min(col0 + column, columns - 1u), group * 8u + part % 8u);
    }
    workgroupBarrier();
    for (var e = 0u; e < 8u + step_info.zero; e = e + 1u) {
      let a0 = tile[rx * PITCH + e];
      let a1 = tile[(rx + 16u) * PITCH + e];
      let a2 = tile[(rx + 32u) * PITCH + e];
      let a3 = tile[(rx + 48u) * PITCH + e];
      let b0 = tile[(rx + 8u) * PITCH + e];
      let b1 = tile[(rx + 24u) * PITCH + e];
      let b2 = tile[(rx + 40u) * PITCH + e];
      let b3 = tile[(rx + 56u) * PITCH + e];
      let ax = vec4<f32>(a0.x, a1.x, a2.x, a3.x);
      let ay = vec4<f32>(a0.y, a1.y, a2.y, a3.y);
      let az = vec4<f32>(a0.z, a1.z, a2.z, a3.z);
      let aw = vec4<f32>(a0.w, a1.w, a2.w, a3.w);
      let bx = vec4<f32>(b0.x, b1.x, b2.x, b3.x);
      let by = vec4<f32>(b0.y, b1.y, b2.y, b3.y);
      let bz = vec4<f32>(b0.z, b1.z, b2.z, b3.z);
      let bw = vec4<f32>(b0.w, b1.w, b2.w, b3.w);
      for (var c = 0u; c < TILE_COLS / 8u; c = c + 1u) {
        let v = tile[X_TILE + (cx + c * 8u) * PITCH + e];
        acc[c * 2u] = fma(aw, v.wwww, fma(az, v.zzzz, fma(ay, v.yyyy, fma(ax, v.xxxx, acc[c * 2u]))));
        acc[c * 2u + 1u] =
            fma(bw, v.wwww, fma(bz, v.zzzz, fma(by, v.yyyy, fma(bx, v.xxxx, acc[c * 2u + 1u]))));
      }
    }
    workgroupBarrier();
  }
  for (var c = 0u; c < TILE_COLS / 8u; c = c + 1u) {
    tile[(cx + c * 8u) * 16u + rx] = acc[c * 2u];
    tile[(cx + c * 8u) * 16u + 8u + rx] = acc[c * 2u + 1u];
  }
  workgroupBarrier();
  if (row0 + lid < ROWS) {
    let end = min(TILE_COLS, columns - col0);
    for (var column = 0u; column < end; column = column + 1u) {
      store(col0 + column, row0 + lid, tile[column * 16u + lid / 4u][lid % 4u]);
    }
  }
}
