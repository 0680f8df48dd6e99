extern "C" __global__ void mark(int* ids) { ids[5] = -1; }
extern "C" __global__ void lookup(const float* table, const int* ids, float* out, int dim) {
  int id = ids[blockIdx.x];
  float v = id >= 0 ? table[id * dim + threadIdx.x] : 0.0f;
  out[blockIdx.x * dim + threadIdx.x] = v;
}
