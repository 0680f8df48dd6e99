extern "C" __global__ void any_negative(const float* x, int* found) {
  if (x[blockIdx.x * 64 + threadIdx.x] < 0.0f) *found = 1;  // BUG: same_value_race
}
