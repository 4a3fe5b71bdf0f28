// Blocks of 32.
//! include codec/f8.wgsl
const BLOCK_GROUPS = 1u;
