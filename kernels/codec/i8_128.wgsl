// Blocks of 128.
//! include codec/i8.wgsl
const BLOCK_GROUPS = 4u;
