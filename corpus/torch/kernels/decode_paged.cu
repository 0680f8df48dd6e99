// A warp a head of a sequence, 16 keys of a page at a time: two lanes a key, for the even and the odd elements.
//
// launch: {"kernels": [{"entry": "decode_paged", "grid": ["heads", "batch"], "block": [32], "shared_bytes": "4 * dim", "args": ["q", "cache_k", "cache_v", "table", "out", "heads", "dim", "blocks", "cache_k_1"]}]}
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

extern "C" __global__ void decode_paged(const T* q, const T* cache_k, const T* cache_v, const long long* table, T* out, long long heads,
                                        long long dim, long long blocks, long long size) {
  extern __shared__ float kept[];
  __shared__ float weights[16];
  const int lane = threadIdx.x;
  const long long head = blockIdx.x, mine = (blockIdx.y * heads + head) * dim;
  for (long long c = lane; c < dim; c += 32) kept[c] = 0;
  const float scale = 1.0f / sqrtf(static_cast<float>(dim));
  float top = -INFINITY, sum = 0;
  for (long long first = 0; first < blocks * size; first += 16) {
    const long long at = first + lane % 16, last = blocks * size - first < 16 ? blocks * size - first : 16;
    float dot = 0;
    if (lane % 16 < last) {
      const long long page = table[blockIdx.y * blocks + at / size];  //~ table: const long long page = table[at / size];
      const T* k = cache_k + ((page * size + at % size) * heads + head) * dim;
      for (long long c = lane / 16; c < dim; c += 2) dot = fmaf(static_cast<float>(q[mine + c]), static_cast<float>(k[c]), dot);
    }
    dot += __shfl_xor_sync(0xffffffffu, dot, 16);
    const float score = lane % 16 < last ? dot * scale : -INFINITY;  //~ padding: const float score = dot * scale;
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
      for (int j = 0; j < last; ++j) {
        const long long key = first + j, page = table[blockIdx.y * blocks + key / size];
        value = fmaf(weights[j], static_cast<float>(cache_v[((page * size + key % size) * heads + head) * dim + c]), value);
      }
      kept[c] = value;
    }
    __syncwarp();
  }
  for (long long c = lane; c < dim; c += 32) out[mine + c] = T(kept[c] / sum);
}
