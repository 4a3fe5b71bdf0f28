// Blocks of 128.
//! include codec/i4.wgsl
const BLOCK_GROUPS = 4u;
