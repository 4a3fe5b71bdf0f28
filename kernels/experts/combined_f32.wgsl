// Nothing more than the results.
fn finish(row: u32, i: u32, v: vec4<f32>, valid: bool, lid: u32) {}
