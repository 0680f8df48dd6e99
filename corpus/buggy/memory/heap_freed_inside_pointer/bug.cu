extern "C" __global__ void fill(float* y, int n) {
  float* list = static_cast<float*>(malloc(n * sizeof(float)));
  if (list == nullptr) return;
  for (int i = 0; i < n; ++i) *list++ = static_cast<float>(i);
  for (int i = 0; i < n; ++i) y[threadIdx.x * n + i] = list[i - n];
  free(list);  // BUG: invalid_free
}
