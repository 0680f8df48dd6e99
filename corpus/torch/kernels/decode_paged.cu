// A warp a head of a sequence, a page at a time: two lanes a key, for the even and the odd elements.
//
// launch: {"kernels": [{"entry": "decode_paged", "grid": ["heads", "batch"], "block": [32], "shared_bytes": "4 * dim", "args": ["q", "cache_k", "cache_v", "table", "out", "heads", "dim", "blocks"]}]}
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

extern "C" __global__ void decode_paged(const T* q, const T* cache_k, const T* cache_v, const long long* table, T* out, long long heads,
                                        long long dim, long long blocks) {
  extern __shared__ float kept[];
  __shared__ float weights[16];
  const int lane = threadIdx.x, key = lane % 16;
  const long long head = blockIdx.x, mine = (blockIdx.y * heads + head) * dim;
  for (long long c = lane; c < dim; c += 32) kept[c] = 0;
  const float scale = 1.0f / sqrtf(static_cast<float>(dim));
  float top = -INFINITY, sum = 0;
  for (long long block = 0; block < blocks; ++block) {
    const long long page = table[blockIdx.y * blocks + block] * 16;  //~ table: const long long page = table[block] * 16;
    const T* k = cache_k + ((page + key) * heads + head) * dim;
    float dot = 0;
    for (long long c = lane / 16; c < dim; c += 2) dot = fmaf(static_cast<float>(q[mine + c]), static_cast<float>(k[c]), dot);
    const float score = (dot + __shfl_xor_sync(0xffffffffu, dot, 16)) * scale;
    float most = score;
    for (int far = 8; far > 0; far /= 2) most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, far));
    const float next = fmaxf(top, most), old = expf(top - next), weight = expf(score - next);
    float more = weight;
    for (int far = 8; far > 0; far /= 2) more += __shfl_xor_sync(0xffffffffu, more, far);
    sum = sum * old + more;  //~ rescale: sum = sum + more;
    top = next;
    if (lane < 16) weights[lane] = weight;
    __syncwarp();  //~ unordered: ;
    for (long long c = lane; c < dim; c += 32) {
      float value = kept[c] * old;
      for (int j = 0; j < 16; ++j) value = fmaf(weights[j], static_cast<float>(cache_v[((page + j) * heads + head) * dim + c]), value);
      kept[c] = value;
    }
    __syncwarp();
  }
  for (long long c = lane; c < dim; c += 32) out[mine + c] = T(kept[c] / sum);
}
