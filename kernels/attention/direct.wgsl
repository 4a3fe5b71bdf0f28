// The only range of a column: its values over its sum are the result. Needs out.
//! include attention/sink.wgsl
@group(0) @binding(7) var<storage, read> sinks: array<f32>;

fn finish(column: u32, head: u32, range: u32, slot4: u32, total: vec4<f32>, largest: f32, sum: f32,
          valid: bool, lid: u32) {
  emit(column, head * (VALUE_DIM / 4u) + slot4, total / with_sink(sum, largest, head), valid, lid);
}
