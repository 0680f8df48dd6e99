// Lambdas, recursion by templates, function pointers in constant memory, structs by value, local
// arrays, integer intrinsics.
struct Shape {
  long long extents[5];
  short kind;
  double scale;
};
typedef float (*Map)(float);
__device__ float Square(float x) { return x * x; }
__device__ float Halve(float x) { return 0.5f * x; }
__device__ Map maps[2] = {Square, Halve};
__constant__ int offsets[3][2] = {{1, 2}, {3, 4}, {5, 6}};

template <int N>
__device__ __forceinline__ int Unrolled(const int* x) {
  if constexpr (N == 0) {
    return x[0];
  } else {
    return x[N] * Unrolled<N - 1>(x);
  }
}

__device__ __noinline__ Shape Grow(Shape shape, int axis) {
  shape.extents[axis] *= 2;
  shape.kind = static_cast<short>(axis);
  return shape;
}

template <class F>
__global__ void Apply(Shape shape, F f, float* out, int n) {
  const Shape grown = Grow(shape, n % 5);
  float local[16];
  for (int i = 0; i < 16; ++i) local[i] = f(out[i]) + offsets[i % 3][n & 1];
  for (int i = 0; i < n; ++i) local[(i * 7) & 15] += maps[i & 1](local[i & 15]);
  out[n] =
      local[n & 15] * static_cast<float>(grown.extents[n % 5]) + static_cast<float>(grown.scale);
}

__global__ void Launch(float* out, int* ints, unsigned char* bytes, int n) {
  out[0] = static_cast<float>(Unrolled<4>(ints));
  ints[1] = __dp4a(ints[2], ints[3], ints[4]) + __funnelshift_rc(ints[5], ints[6], n) +
            __mulhi(ints[7], n);
  ints[8] = __byte_perm(ints[9], ints[10], 0x5410) + __ffs(n) + (ints[11] >> (n & 31)) + abs(n);
  bytes[3] = static_cast<unsigned char>(bytes[4] * bytes[5] + static_cast<signed char>(bytes[6]));
  unsigned __int128 product = static_cast<unsigned __int128>(ints[12]) * 0x123456789abcdefull;
  ints[13] = static_cast<int>(product >> 64);
}

template __global__ void Apply(Shape, Map, float*, int);
__global__ void Capture(Shape shape, float* out, int n) {
  auto f = [=](float x) { return x * n + static_cast<float>(shape.scale); };
  for (int i = 0; i < n; ++i) out[i] = f(out[i]);
}
