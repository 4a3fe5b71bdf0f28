// log(1 + exp(v)), also where the sum would lose exp(v).
fn softplus(v: f32) -> f32 {
  let e = exp(-abs(v));
  let small = e * fma(e, fma(e, fma(e, -0.25, 0.3333333333), -0.5), 1.0);
  return select(0.0, v, v > 0.0) + select(log(1.0 + e), small, e < 0.02);
}
