// A score from q . k.
fn score(dot: f32) -> f32 {
  let s = dot * SCALE;
  if (SOFTCAP > 0.0) {
    return SOFTCAP * tanh(clamp(s / SOFTCAP, -15.0, 15.0));
  }
  return s;
}

// The first position that a query at `own` sees.
fn first_key(own: u32) -> u32 {
  if (WINDOW > 0u && own >= WINDOW) {
    return own - WINDOW + 1u;
  }
  return 0u;
}
