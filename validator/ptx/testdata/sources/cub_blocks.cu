// cub::BlockRadixSort and cub::BlockScan.
#include <cub/cub.cuh>
__global__ void rs(int* k, int* v) {
  typedef cub::BlockRadixSort<int, 128, 4, int> S;
  __shared__ typename S::TempStorage t;
  int a[4], b[4];
  for (int i = 0; i < 4; i++) {
    a[i] = k[threadIdx.x * 4 + i];
    b[i] = v[threadIdx.x * 4 + i];
  }
  S(t).Sort(a, b);
  for (int i = 0; i < 4; i++) {
    k[threadIdx.x * 4 + i] = a[i];
    v[threadIdx.x * 4 + i] = b[i];
  }
}
__global__ void scan(float* k) {
  typedef cub::BlockScan<float, 256> S;
  __shared__ typename S::TempStorage t;
  float x = k[threadIdx.x];
  S(t).InclusiveSum(x, x);
  k[threadIdx.x] = x;
}
