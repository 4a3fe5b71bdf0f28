// The activation functions; ACTIVATION is the enum's value in plan/op.h.
//! include lib/nan.wgsl
fn erf_of(x: f32) -> f32 {
  // Abramowitz and Stegun 7.1.26 has an error of 1.5e-7.
  let t = 1.0 / fma(0.3275911, abs(x), 1.0);
  let poly =
      t * fma(t, fma(t, fma(t, fma(t, 1.061405429, -1.453152027), 1.421413741), -0.284496736), 0.254829592);
  let y = 1.0 - poly * exp(-x * x);
  return select(y, -y, x < 0.0);
}

fn relu(x: f32) -> f32 {
  return select(max(x, 0.0), x, is_nan(x));
}

fn activate(x: f32) -> f32 {
  switch ACTIVATION {
    case 0u: {  // silu
      return x / (1.0 + exp(-x));
    }
    case 1u: {  // gelu_tanh
      let inner = 0.7978845608 * fma(0.044715 * x * x, x, x);
      return 0.5 * x * (1.0 + tanh(clamp(inner, -15.0, 15.0)));
    }
    case 2u: {  // gelu_erf
      return 0.5 * x * (1.0 + erf_of(x * 0.7071067812));
    }
    case 3u: {  // relu
      return relu(x);
    }
    case 4u: {  // relu_squared
      let y = relu(x);
      return y * y;
    }
    default: {  // sigmoid
      return 1.0 / (1.0 + exp(-x));
    }
  }
}
