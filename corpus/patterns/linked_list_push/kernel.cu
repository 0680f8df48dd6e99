extern "C" __global__ void push(int* head, int* next, float* value) {
  int i = blockIdx.x * 32 + threadIdx.x;
  value[i] = 1.0f;
  next[i] = atomicExch(&head[i % 4], i);
}
extern "C" __global__ void walk(const int* head, const int* next, const float* value, float* sum) {
  float s = 0.0f;
  for (int i = head[threadIdx.x]; i >= 0; i = next[i]) s += value[i];
  sum[threadIdx.x] = s;
}
