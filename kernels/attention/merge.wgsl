// Joins the ranges of split attention: a workgroup has a head of a column. RANGE_LANES lanes by vectors
// of 4 dimensions add every RANGE_LANES-th range, then the lanes are added; the order depends on the
// column's position alone. Includes: lib/reduce_*, out/*. Dispatch: x over heads, y over columns.
//! include lib/step.wgsl
//! include attention/score.wgsl
//! include attention/sink.wgsl
@group(0) @binding(2) var<storage, read> partial_values: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> columns: array<vec4<u32>>;  // token, position, slot
@group(0) @binding(4) var<storage, read> partial_stats: array<vec2<f32>>;
@group(0) @binding(5) var<storage, read> sinks: array<f32>;

const LOWEST = -3.0e38;

var<workgroup> octet_parts: array<f32, OCTETS>;
var<workgroup> factors: array<f32, MAX_RANGES>;
var<workgroup> value_parts: array<vec4<f32>, RANGE_LANES * VALUE_SLOTS>;

@compute @workgroup_size(WORKGROUP_X)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
  let own = columns[wid.y].y;
  let begin = first_key(own) / KEYS_PER_RANGE;
  let end = own / KEYS_PER_RANGE + 1u;
  let row = (wid.y * HEADS + wid.x) * MAX_RANGES;

  var largest = LOWEST;
  for (var range = begin + lid; range < end; range = range + WORKGROUP_X) {
    largest = max(largest, partial_stats[row + range].x);
  }
  largest = octet_max_f32(largest, lid);
  if (lid % 8u == 0u) {
    octet_parts[lid / 8u] = largest;
  }
  workgroupBarrier();
  //! unroll i OCTETS
  largest = max(largest, octet_parts[$i]);
  //! end
  var sum = 0.0;
  for (var range = begin + lid; range < end; range = range + WORKGROUP_X) {
    let stats = partial_stats[row + range];
    let factor = exp(stats.x - largest);
    factors[range] = factor;
    sum = fma(stats.y, factor, sum);
  }
  sum = workgroup_sum(sum, lid);

  let d = lid % VALUE_SLOTS;
  let lane = lid / VALUE_SLOTS;
  var total = vec4<f32>();
  if (d < VALUE_DIM / 4u) {
    let at = row * (VALUE_DIM / 4u) + d;
    for (var range = begin + lane; range < end; range = range + RANGE_LANES * 4u) {
      //! unroll u 4
      let range_$u = range + $u * RANGE_LANES;
      let part_$u = partial_values[at + min(range_$u, end - 1u) * (VALUE_DIM / 4u)];
      //! end
      //! unroll u 4
      if (range_$u < end) {
        total = fma(part_$u, vec4<f32>(factors[range_$u]), total);
      }
      //! end
    }
  }
  value_parts[lid] = total;
  workgroupBarrier();

  var result = vec4<f32>();
  let valid = lid < VALUE_DIM / 4u;
  if (valid) {
    //! unroll i RANGE_LANES
    result = result + value_parts[$i * VALUE_SLOTS + lid];
    //! end
    result = result / with_sink(sum, largest, wid.x);
  }
  emit(wid.y, wid.x * (VALUE_DIM / 4u) + lid, result, valid, lid);
}
