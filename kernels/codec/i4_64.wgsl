// Blocks of 64.
//! include codec/i4.wgsl
const BLOCK_GROUPS = 2u;
