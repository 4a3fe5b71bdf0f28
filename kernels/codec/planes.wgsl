// The two planes of a weight (docs/kernels.md): plane 0 has the blocks' quants in whole vectors,
// plane 1 a type's table, if it has one, and what is apart of the blocks.
//! include codec/bytes.wgsl
@group(0) @binding(2) var<storage, read> weights: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> weight_side: array<u32>;
