extern "C" __global__ void ids(int* ids) { ids[threadIdx.x] = threadIdx.x % 3; }
extern "C" __global__ void scatter(const float* grad, const int* ids, float* table) {
  int row = ids[blockIdx.x];
  float old = table[row * 32 + threadIdx.x];
  table[row * 32 + threadIdx.x] = old + grad[blockIdx.x * 32 + threadIdx.x];  // BUG: data_race
}
