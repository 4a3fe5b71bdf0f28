// Groups of 32 values d * codebook[q].
//! include codec/signed_group.wgsl
//! include codec/nibble_table.wgsl

// A group of 32 in which byte i holds value i in its low and value i + 16 in its high nibble.
fn nibble_group(q: vec4<u32>, d: f32) -> Group {
  let x = nibble_values(q.x);
  let y = nibble_values(q.y);
  let z = nibble_values(q.z);
  let w = nibble_values(q.w);
  return Group(vec4<u32>(x.x, y.x, z.x, w.x), vec4<u32>(x.y, y.y, z.y, w.y), d);
}
