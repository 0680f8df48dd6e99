// The language of references: one source, run in several number types (docs/ops.md).
//
//   #include "assay/reference.cuh"
//   using T = ASSAY_T;                       // the dtype bound to the op's variable T
//   __global__ void row_sum(const T* x, Out<T>* y, int64 rows, int64 columns) {
//     const int64 row = thread_index();
//     if (row >= rows) return;
//     Real sum = 0;
//     for (int64 i = 0; i < columns; ++i) sum += Real(x[row * columns + i]);
//     y[row] = sum;
//   }
//
// Real is the number type of the run; T converts to Real exactly; storing into an Out<T> records
// the result. Workspace between kernels has the dtype "Real" in reference.json, and zeroed
// workspace holds zeros. Functions: exp exp2 log sqrt rsqrt tanh erf abs min max fma,
// select_less(a, b, x, y), round_to<T>(x) for casts that the op itself prescribes, and x.settled()
// for a sum that is to be taken as one rounded number inside a larger sum.
//
// More of them, with decisions that may go either way, are in functions.cuh: sin cos atan log1p expm1
// log2 log10 pow erfinv sigmoid softplus floor ceil round trunc sign scaled, less less_equal equal,
// select(decision, x, y).
//
// average(sum, count) is a quotient that may also be kept as a running mean (Welford).
// affine(x, mean, factor, shift) is (x - mean) * factor + shift, which may also be multiplied out.
// may_round_to<T>(x) marks a cast that implementations may make but need not, such as that of
// attention's probabilities; may_round_to<T>(x, divisor) one that may also follow a division.
// may_rescale(x) marks a number that may be kept multiplied by a constant, such as log2(e).
#pragma once

#include "assay/bounded.cuh"
#include "assay/functions.cuh"
#include "assay/rounded.cuh"

#ifndef ASSAY_PRELUDE_TYPES_ONLY
#if !defined(ASSAY_ROUNDED_FORMAT)
/// What the contract says of this run's inputs, a bit each. The judge puts another value into the
/// compiled text (validator/oracle/number_kind.h): compiling takes longer than most runs.
extern "C" __constant__ unsigned assay_run = 1934623233u;
#endif

namespace assay {

#if defined(ASSAY_ROUNDED_FORMAT)
using Real = Rounded<ASSAY_ROUNDED_FORMAT, Rounding::ASSAY_ROUNDING, ASSAY_SEED, ASSAY_FUSED>;
template <class T>
using Out = RoundedCell<Real, T>;
#else
#ifndef ASSAY_CONTRACT_FORMAT
#define ASSAY_CONTRACT_FORMAT F32Format
#endif
#ifndef ASSAY_APPROXIMATE
#define ASSAY_APPROXIMATE true
#endif
#ifndef ASSAY_HALF_INPUTS
#define ASSAY_HALF_INPUTS false
#endif
#ifndef ASSAY_TENSOR_CORES
#define ASSAY_TENSOR_CORES false
#endif
#ifndef ASSAY_COARSE_TANH
#define ASSAY_COARSE_TANH false
#endif
struct OpContract {
  using format = ASSAY_CONTRACT_FORMAT;
  static constexpr double lambda = 4.0;
  static ASSAY_DEVICE bool independent() { return (assay_run & 1u) != 0; }
  static ASSAY_DEVICE bool in_order() { return (assay_run & 2u) != 0; }
  /// Blocks whose lanes share rows are [lanes, n] (below).
  static ASSAY_DEVICE double lanes() { return blockDim.y > 1 ? blockDim.x : 1; }
  static constexpr bool approximate = ASSAY_APPROXIMATE;
  static constexpr bool tensor_cores = ASSAY_TENSOR_CORES;
  static constexpr bool half_inputs = ASSAY_HALF_INPUTS;
  static constexpr bool coarse_tanh = ASSAY_COARSE_TANH;
};
using Real = Bounded<OpContract>;
template <class T>
using Out = BoundedCell<OpContract, T>;
#endif

/// cos(2 pi k / n) and sin(2 pi k / n).
ASSAY_DEVICE Real turn_cos(int64 k, int64 n) { return Turn<Real>::of(cosine_of_turn(k, n)); }
ASSAY_DEVICE Real turn_sin(int64 k, int64 n) {
  return Turn<Real>::of(cosine_of_turn(4 * k - n, 4 * n));
}

}  // namespace assay

using assay::int64;
using assay::Out;
using assay::Real;
using assay::turn_cos;
using assay::turn_sin;
#endif

namespace assay {
/// Index of this thread in the grid's first dimension.
ASSAY_DEVICE int64 thread_index() {
  return static_cast<int64>(blockIdx.x) * blockDim.x + threadIdx.x;
}

/// Where lanes share a row, because rows may be long and their elements share work: blocks are [lanes, n],
/// lanes 1 or 32. This is the row, the lane, and a point that all lanes of the row reach before any goes on.
ASSAY_DEVICE int64 row_index() {
  return static_cast<int64>(blockIdx.x) * blockDim.y + threadIdx.y;
}
ASSAY_DEVICE int64 lane_index() { return threadIdx.x; }
ASSAY_DEVICE int64 lane_count() { return blockDim.x; }
ASSAY_DEVICE void sync_row() {
  if (blockDim.x > 1) __syncwarp();
}

/// What the lane at that distance has. All lanes of the row ask at once.
template <class R>
ASSAY_DEVICE R of_other_lane(const R& x, unsigned distance) {
  constexpr unsigned kWords = sizeof(R) / sizeof(double);
  static_assert(kWords * sizeof(double) == sizeof(R));
  R other;
  const double* const mine = reinterpret_cast<const double*>(&x);
  double* const theirs = reinterpret_cast<double*>(&other);
#if defined(__CUDACC__)
#pragma unroll
#endif
  for (unsigned i = 0; i < kWords; ++i)
    theirs[i] = __shfl_xor_sync(0xffffffffu, mine[i], static_cast<int>(distance));
  return other;
}
/// Of what each lane of a row has, the sum and the largest: the same on all lanes, and with one lane
/// its own. All lanes of the row come here, those with nothing to do as well: with 0, or with what
/// another has. The order of adding is another than along the row; that is for contracts that allow it.
template <class R>
ASSAY_DEVICE R sum_of_lanes(R x) {
  for (unsigned distance = blockDim.x / 2; distance > 0; distance /= 2)
    x = x + of_other_lane(x, distance);
  return x;
}
/// The sum of what the lanes before this one have; 0 on the first.
template <class R>
ASSAY_DEVICE R sum_of_lanes_before(R x) {
  R before = 0;
  for (unsigned distance = 1; distance < blockDim.x; distance *= 2) {
    const R other = of_other_lane(x, distance);
    if ((threadIdx.x & distance) != 0) before = other + before;
    x = x + other;
  }
  return before;
}
/// The same of a block of one lane a row, and no more rows than a warp has lanes: by row, where something holds, and the sum of what
/// all have.
ASSAY_DEVICE unsigned rows_where(bool holds) {
  return __ballot_sync(blockDim.y < 32 ? (1u << blockDim.y) - 1 : 0xffffffffu, holds);
}
template <class R>
ASSAY_DEVICE R sum_of_rows(R x) {
  for (unsigned distance = blockDim.y / 2; distance > 0; distance /= 2)
    x = x + of_other_lane(x, distance);
  return x;
}
template <class R>
ASSAY_DEVICE R max_of_lanes(R x) {
  for (unsigned distance = blockDim.x / 2; distance > 0; distance /= 2)
    x = max(x, of_other_lane(x, distance));
  return x;
}
}  // namespace assay
using assay::Decision;
using assay::floor_div;
using assay::floor_mod;
using assay::greater;
using assay::greater_or_equal;
using assay::lane_count;
using assay::lane_index;
using assay::larger_of;
using assay::lesser;
using assay::lesser_or_equal;
using assay::max_of_lanes;
using assay::may_rescale;
using assay::may_round_to;
using assay::round_to;
using assay::row_index;
using assay::rows_where;
using assay::smaller_of;
using assay::sum_of_lanes;
using assay::sum_of_lanes_before;
using assay::sum_of_rows;
using assay::sync_row;
using assay::thread_index;
using assay::wrapped;
