// Row of C = row of A times B, in `tiles` tiles of 32 columns; the tiles' k ranges are dealt out evenly to all blocks.
extern "C" __global__ void gemm_row(const float* a, const float* b, float* c, float* partial, int* flags, int tiles, int k) {
  int total = tiles * k, per = (total + gridDim.x - 1) / gridDim.x;
  int from = blockIdx.x * per, to = min(from + per, total);
  while (from < to) {
    int tile = from / k, begin = from % k, end = min(k, begin + to - from);
    float sum = 0.0f;
    for (int i = begin; i < end; ++i) sum += a[tile * 64 + i] * b[(i % 16) * 128 + tile * 32 + threadIdx.x];
    if (begin != 0) {
      // Not the first of this tile: hand over.
      partial[blockIdx.x * 32 + threadIdx.x] = sum;
      __syncthreads();
      if (threadIdx.x == 0) {
        __threadfence();
        atomicExch(&flags[blockIdx.x], 1);
      }
    } else {
      // The first one adds what the blocks behind it found.
      int have = end, peer = blockIdx.x;
      while (have < k) {
        ++peer;
        if (threadIdx.x == 0) {
          while (atomicAdd(&flags[peer], 0) == 0) {
          }
          __threadfence();
        }
        __syncthreads();
        sum += partial[peer * 32 + threadIdx.x];
        have += per;
      }
      c[tile * 32 + threadIdx.x] = sum;
    }
    from += end - begin;
    __syncthreads();
  }
}
