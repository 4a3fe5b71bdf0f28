// Included by two files; must appear once.
fn twice(x: u32) -> u32 { return 2u * x; }
