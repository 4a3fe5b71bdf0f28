// Blocks of 128.
//! include codec/f8.wgsl
const BLOCK_GROUPS = 4u;
