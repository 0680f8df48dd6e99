// 64 x 64 tiles, 256 threads with 4 x 4 results each, f32. Blocks go through the tiles in groups of
// eight rows of tiles, so that a wave of them shares columns of b in the L2.
constexpr int kTile = 64;
constexpr int kDepth = 16;
constexpr int kGroup = 8;

extern "C" __global__ void __launch_bounds__(256)
gemm(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, long long m,
     long long n, long long k) {
  __shared__ float a_tile[kDepth][kTile + 1];
  __shared__ float b_tile[kDepth][kTile];

  const int tiles_m = static_cast<int>((m + kTile - 1) / kTile);
  const int tiles_n = static_cast<int>((n + kTile - 1) / kTile);
  const int id = blockIdx.x;
  int tile_m, tile_n;
  if (tiles_m <= kGroup) {
    tile_m = id % tiles_m;
    tile_n = id / tiles_m;
  } else {
    const int in_group = kGroup * tiles_n;
    const int first = id / in_group * kGroup;
    const int size = tiles_m - first < kGroup ? tiles_m - first : kGroup;
    tile_m = first + id % in_group % size;
    tile_n = id % in_group / size;
  }
  const long long row0 = static_cast<long long>(tile_m) * kTile;
  const long long column0 = static_cast<long long>(tile_n) * kTile;
  if (row0 >= m) return;

  const int tx = threadIdx.x % 16;
  const int ty = threadIdx.x / 16;
  float sum[4][4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j) sum[i][j] = 0.0f;

  for (long long start = 0; start < k; start += kDepth) {
    for (int e = threadIdx.x; e < kTile * kDepth; e += 256) {
      const int l = e % kDepth;
      const int i = e / kDepth;
      a_tile[l][i] = row0 + i < m && start + l < k ? a[(row0 + i) * k + start + l] : 0.0f;
    }
    for (int e = threadIdx.x; e < kTile * kDepth; e += 256) {
      const int j = e % kTile;
      const int l = e / kTile;
      b_tile[l][j] = column0 + j < n && start + l < k ? b[(start + l) * n + column0 + j] : 0.0f;
    }
    __syncthreads();
#pragma unroll
    for (int l = 0; l < kDepth; ++l) {
      float left[4], right[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) left[i] = a_tile[l][ty + 16 * i];
#pragma unroll
      for (int j = 0; j < 4; ++j) right[j] = b_tile[l][tx + 16 * j];
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) sum[i][j] = fmaf(left[i], right[j], sum[i][j]);
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const long long row = row0 + ty + 16 * i;
    if (row >= m) continue;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const long long column = column0 + tx + 16 * j;
      if (column < n) c[row * n + column] = sum[i][j];
    }
  }
}
