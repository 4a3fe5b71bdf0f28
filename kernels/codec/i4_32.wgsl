// Blocks of 32.
//! include codec/i4.wgsl
const BLOCK_GROUPS = 1u;
