extern "C" __global__ void ids(int* ids) { ids[threadIdx.x] = threadIdx.x % 3; }
extern "C" __global__ void scatter(const float* grad, const int* ids, float* table) {
  // One block a row, in the order of the tokens: deterministic.
  float sum = 0.0f;
  for (int t = 0; t < gridDim.x; ++t) {
    if (ids[t] == blockIdx.x) sum += grad[t * 32 + threadIdx.x];
  }
  if (blockIdx.x < 4) table[blockIdx.x * 32 + threadIdx.x] += sum;
}
