// One pass over the logits: running maximum and sum, and the target's logit as it comes by.
constexpr unsigned kAll = 0xffffffffu;

struct Running {
  float largest, sum;
};

__device__ __forceinline__ Running join(Running a, Running b) {
  const float largest = fmaxf(a.largest, b.largest);
  const float from_a = a.largest == largest ? a.sum : a.sum * expf(a.largest - largest);
  const float from_b = b.largest == largest ? b.sum : b.sum * expf(b.largest - largest);
  return {largest, from_a + from_b};
}

__device__ __forceinline__ Running join_lanes(Running mine) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) {
    const Running other{__shfl_xor_sync(kAll, mine.largest, offset), __shfl_xor_sync(kAll, mine.sum, offset)};
    mine = join(mine, other);
  }
  return mine;
}

// Few classes: a warp a token.
extern "C" __global__ void narrow(const float* __restrict__ logits, const long long* __restrict__ targets,
                                  float* __restrict__ loss, long long tokens, long long vocab) {
  const long long token = static_cast<long long>(blockIdx.x) * 8 + threadIdx.x / 32;
  if (token >= tokens) return;
  const float* row = logits + token * vocab;
  Running mine{__int_as_float(0xff800000), 0.0f};
  for (long long v = threadIdx.x % 32; v < vocab; v += 32) mine = join(mine, {row[v], 1.0f});
  mine = join_lanes(mine);
  if (threadIdx.x % 32 == 0) loss[token] = logf(mine.sum) + (mine.largest - row[targets[token]]);
}

// Many: a block of 256 a token, four logits a thread and turn.
extern "C" __global__ void __launch_bounds__(256)
    wide(const float* __restrict__ logits, const long long* __restrict__ targets, float* __restrict__ loss,
         long long vocab) {
  __shared__ Running parts[8];
  __shared__ float picked;
  const long long token = blockIdx.x;
  const float* row = logits + token * vocab;
  const long long target = targets[token];
  if (threadIdx.x == 0) picked = 0.0f;
  __syncthreads();
  Running mine{__int_as_float(0xff800000), 0.0f};
  long long v = threadIdx.x;
  for (; v + 768 < vocab; v += 1024) {
    float x[4];
#pragma unroll
    for (int u = 0; u < 4; ++u) {
      x[u] = row[v + u * 256];
      if (v + u * 256 == target) picked = x[u];
    }
    const float largest = fmaxf(fmaxf(fmaxf(x[0], x[1]), fmaxf(x[2], x[3])), mine.largest);
    float sum = mine.sum * expf(mine.largest - largest);
#pragma unroll
    for (int u = 0; u < 4; ++u) sum += expf(x[u] - largest);
    mine = {largest, sum};
  }
  for (; v < vocab; v += 256) {
    mine = join(mine, {row[v], 1.0f});
  }
  mine = join_lanes(mine);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = mine;
  __syncthreads();
  if (threadIdx.x == 0) {
    Running all = parts[0];
    for (int w = 1; w < 8; ++w) all = join(all, parts[w]);
    loss[token] = logf(all.sum) + (all.largest - picked);
  }
}
