// The sinks' part in the softmax. Needs `sinks`, a score for each query head, used with SINKS.
// The sum of exponentials below `largest`, with that of the head's sink.
fn with_sink(sum: f32, largest: f32, head: u32) -> f32 {
  if (SINKS) {
    return sum + exp(sinks[head] - largest);
  }
  return sum;
}
