//! unroll i 2
fn f$i() {}
