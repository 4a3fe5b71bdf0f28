//! include lib/twice.wgsl
fn more(x: u32) -> u32 { return twice(x) - x; }
