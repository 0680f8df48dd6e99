"""The words of the reference language as plain f32, so that the reference's own text is a candidate.

It is the op's naive candidate: right, slow, one thread an element, with sums in order.
"""

SHIM = """
// The reference's words, in f32.
using int64 = long long;
using Real = float;
using Decision = bool;
template <class T>
using Out = T;
namespace assay {
using bf16 = __nv_bfloat16;
using f16 = __half;
using f8e4m3 = __nv_fp8_e4m3;
using f8e5m2 = __nv_fp8_e5m2;
using f32 = float;
__device__ float infinity() { return __int_as_float(0x7f800000); }
}  // namespace assay
__device__ int64 thread_index() { return static_cast<int64>(blockIdx.x) * blockDim.x + threadIdx.x; }
__device__ float may_rescale(float x) { return x; }
template <class U>
__device__ float may_round_to(float x) { return x; }
template <class U>
__device__ float may_round_to(float x, float) { return x; }
template <class U>
__device__ float round_to(float x) { return static_cast<float>(U(x)); }
__device__ bool less(float a, float b) { return a < b; }
__device__ bool less_equal(float a, float b) { return a <= b; }
__device__ bool equal(float a, float b) { return a == b; }
template <class U>
__device__ bool greater(U a, U b) { return a > b; }
template <class U>
__device__ bool lesser(U a, U b) { return a < b; }
template <class U>
__device__ bool greater_or_equal(U a, U b) { return a >= b; }
template <class U>
__device__ bool lesser_or_equal(U a, U b) { return a <= b; }
__device__ bool holds(bool x) { return x; }
template <class U>
__device__ U select(bool c, U x, U y) { return c ? x : y; }
__device__ int64 whole(float x) { return static_cast<int64>(x); }
__device__ int64 wrapped(int64 i, int64 n) { return i < 0 ? i + n : i; }
__device__ int64 larger_of(int64 a, int64 b) { return a < b ? b : a; }
__device__ int64 smaller_of(int64 a, int64 b) { return a < b ? a : b; }
__device__ int64 floor_div(int64 a, int64 b) { return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0); }
__device__ int64 floor_mod(int64 a, int64 b) { return a - floor_div(a, b) * b; }
__device__ float max(float a, float b) { return a != a || a >= b ? a : b; }
__device__ float min(float a, float b) { return a != a || a <= b ? a : b; }
__device__ float abs(float x) { return fabsf(x); }
__device__ float average(float sum, float count) { return sum / count; }
__device__ float affine(float x, float mean, float factor, float shift) { return (x - mean) * factor + shift; }
__device__ float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }
__device__ float softplus(float x) { return fmaxf(x, 0.0f) + log1pf(expf(-fabsf(x))); }
__device__ float erfinv(float x) { return erfinvf(x); }
__device__ float sign(float x) { return x > 0 ? 1.0f : x < 0 ? -1.0f : x; }
__device__ float round(float x) { return rintf(x); }
__device__ float turn_cos(int64 k, int64 n) { return cospif(2.0f * static_cast<float>(k % n) / static_cast<float>(n)); }
__device__ float turn_sin(int64 k, int64 n) { return sinpif(2.0f * static_cast<float>(k % n) / static_cast<float>(n)); }
"""
