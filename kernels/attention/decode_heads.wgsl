// The sums over lanes at the end of attention/decode.wgsl. The kernel fills octet_sums and value_sums,
// and says the largest score of head h of the tile by largest_of(h).
//! include attention/queries.wgsl
var<workgroup> value_sums: array<Eight, HEAD_TILE * WORKGROUP_X>;

// Adds what lanes have of each head's values. Octets have eight vectors of 4 dimensions of one head.
fn finish_heads(column: u32, head0: u32, heads: u32, range: u32, lid: u32) {
  for (var start = 0u; start < HEAD_TILE * VALUE_SLOTS * 2u; start = start + WORKGROUP_X) {
    let h = min((start + lid) / (VALUE_SLOTS * 2u), HEAD_TILE - 1u);
    let slot4 = (start + lid) % (VALUE_SLOTS * 2u);
    let there = start + lid < heads * VALUE_SLOTS * 2u && slot4 * 4u < VALUE_DIM;
    var total = vec4<f32>();
    var sum = 0.0;
    if (there) {
      let at = h * WORKGROUP_X + slot4 / 2u;
      //! unroll i KEY_LANES
      total = total + select(value_sums[at + $i * VALUE_SLOTS].a, value_sums[at + $i * VALUE_SLOTS].b,
                             (slot4 & 1u) == 1u);
      //! end
      //! unroll i OCTETS
      sum = sum + octet_sums[h * OCTETS + $i];
      //! end
    }
    finish(column, head0 + h, range, slot4, total, largest_of(h), sum, there, lid);
  }
}
