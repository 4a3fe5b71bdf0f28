//! unroll i MANY
//! end
