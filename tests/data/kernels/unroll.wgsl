@group(0) @binding(0) var<storage, read_write> result: array<u32>;

@compute @workgroup_size(1)
fn main() {
  //! unroll row ROWS
  var sum_$row = $row * 100u;
  //! unroll c 2
  sum_$row = sum_$row + ($c + 1u) * 10u;
  //! end
  result[$row] = sum_$row;
  //! end
}
