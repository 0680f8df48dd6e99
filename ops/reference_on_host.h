// Compiles references as plain C++, for tests: the names that CUDA would provide, and a loop in
// place of a launch.
//
//   namespace bounded {
//   using Real = assay::Bounded<assay::F32Contract>;
//   template <class T> using Out = assay::BoundedCell<assay::F32Contract, T>;
//   #include "ops/rms_norm/reference.cu"     // with ASSAY_T defined
//   }
//   RunOnHost(rows, [&] { bounded::rms_norm(x, w, eps, y, rows, hidden); });
#pragma once

struct HostDim3 {
  unsigned x = 0, y = 0, z = 0;
};
inline thread_local HostDim3 blockIdx, threadIdx, blockDim{1, 1, 1}, gridDim{1, 1, 1};
#define __global__
inline void __syncwarp() {}
inline double __shfl_xor_sync(unsigned, double x, int) { return x; }
inline unsigned __ballot_sync(unsigned, bool holds) { return holds ? 1 : 0; }

#define ASSAY_PRELUDE_TYPES_ONLY
#include "assay/reference.cuh"

using assay::int64;

/// Calls `kernel` as each of `threads` threads.
template <class Kernel>
void RunOnHost(assay::int64 threads, Kernel&& kernel) {
  for (assay::int64 i = 0; i < threads; ++i) {
    blockIdx.x = static_cast<unsigned>(i);
    kernel();
  }
}
