// Every element counts those that come before it, a tile at a time; of equal ones the earlier comes first.
//
// launch: {"kernels": [{"entry": "sort_rows", "grid": ["ceil_div(columns, 128)", "rows"], "block": [128], "args": ["x", "out", "columns"]}]}
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

extern "C" __global__ void sort_rows(const T* x, T* out, long long columns) {
  __shared__ float tile[128];
  const T* in = x + blockIdx.y * columns;
  const long long mine = blockIdx.x * 128ll + threadIdx.x;
  const float value = mine < columns ? static_cast<float>(in[mine]) : 0.0f;
  long long place = 0;
  for (long long first = 0; first < columns; first += 128) {
    const int filled = columns - first < 128 ? static_cast<int>(columns - first) : 128;
    if (threadIdx.x < filled) tile[threadIdx.x] = static_cast<float>(in[first + threadIdx.x]);
    __syncthreads();
    for (int j = 0; j < filled; ++j) {  //~ padding: for (int j = 0; j < 128; ++j) {
      const bool earlier = tile[j] == value && first + j < mine;  //~ tie: const bool earlier = false;
      if (tile[j] < value || earlier) ++place;
    }
    __syncthreads();
  }
  if (mine < columns) out[blockIdx.y * columns + place] = T(value);
}
