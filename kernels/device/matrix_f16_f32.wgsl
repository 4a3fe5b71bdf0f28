// C += A * B on 16 x 16 cooperative matrices of small integers; the host knows the result. A is read
// by rows, B and C by columns, as the matrix kernels do.
@group(0) @binding(0) var<storage, read_write> data: array<f32>;

var<workgroup> a: array<f16, 256>;
var<workgroup> b: array<f16, 256>;
var<workgroup> c: array<f32, 256>;

@compute @workgroup_size(WORKGROUP_X)
fn main(@builtin(local_invocation_index) thread: u32) {
  for (var i = thread; i < 256u; i += WORKGROUP_X) {
    a[i] = f16(i32(i * 7u % 13u) - 6);
    b[i] = f16(i32(i * 5u % 11u) - 5);
    c[i] = f32(i32(i * 3u % 17u) - 8);
  }
  workgroupBarrier();
  let stride = 16u;
  let left = coopLoadT<coop_mat16x16<f16, A>>(&a[0], stride);
  let right = coopLoad<coop_mat16x16<f16, B>>(&b[0], stride);
  let sum = coopLoad<coop_mat16x16<f32, C>>(&c[0], stride);
  coopStore(coopMultiplyAdd(left, right, sum), &data[0], stride);
}
