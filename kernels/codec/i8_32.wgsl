// Blocks of 32.
//! include codec/i8.wgsl
const BLOCK_GROUPS = 1u;
