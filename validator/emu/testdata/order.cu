// Results that depend on who comes first, and some that do not.
//   nvcc -std=c++17 -arch=sm_80 -lineinfo -ptx -o order.ptx order.cu

extern "C" __global__ void sum_floats(const float* x, float* out) {
  if (threadIdx.x == 0) atomicAdd(out, x[blockIdx.x]);
}

extern "C" __global__ void sum_floats_of_a_warp(const float* x, float* out) {
  atomicAdd(out, x[threadIdx.x]);
}

// Each block waits for its turn: one order only.
extern "C" __global__ void sum_in_turn(const float* x, float* out, int* turn) {
  if (threadIdx.x != 0) return;
  while (atomicAdd(turn, 0) != blockIdx.x) {
  }
  __threadfence();
  atomicAdd(out, x[blockIdx.x]);
  __threadfence();
  atomicAdd(turn, 1);
}

extern "C" __global__ void sum_integers(const int* x, int* out) {
  if (threadIdx.x == 0) atomicAdd(out, x[blockIdx.x]);
}

// Places are given away in order of arrival.
extern "C" __global__ void compact(const int* x, int* out, int* count) {
  if (threadIdx.x == 0 && x[blockIdx.x] > 0) out[atomicAdd(count, 1)] = x[blockIdx.x];
}

// Who is first keeps the slot.
extern "C" __global__ void first_come(int* slot, int* out) {
  if (threadIdx.x != 0) return;
  const int before = atomicCAS(slot, -1, static_cast<int>(blockIdx.x));
  out[blockIdx.x] = before == -1 ? 1 : 0;
}

// Loops around a compare-and-swap: a float sum, the largest, a sum of integers, one of two halves.
extern "C" __global__ void sum_floats_by_swaps(const float* x, float* out) {
  if (threadIdx.x != 0) return;
  unsigned* const word = reinterpret_cast<unsigned*>(out);
  unsigned old = *static_cast<volatile unsigned*>(word), seen;
  do {
    seen = old;
    old = atomicCAS(word, seen, __float_as_uint(__uint_as_float(seen) + x[blockIdx.x]));
  } while (old != seen);
}
extern "C" __global__ void largest_by_swaps(const float* x, float* out) {
  if (threadIdx.x != 0) return;
  unsigned* const word = reinterpret_cast<unsigned*>(out);
  unsigned old = *static_cast<volatile unsigned*>(word), seen;
  do {
    seen = old;
    const float twice = fmaxf(__uint_as_float(seen), 2.0f * x[blockIdx.x]);
    old = atomicCAS(word, seen, __float_as_uint(twice));
  } while (old != seen);
}
extern "C" __global__ void sum_integers_by_swaps(const int* x, int* out) {
  if (threadIdx.x != 0) return;
  int old = *static_cast<volatile int*>(out), seen;
  do {
    seen = old;
    old = atomicCAS(out, seen, seen + x[blockIdx.x]);
  } while (old != seen);
}
// Lanes of one warp, in double precision.
extern "C" __global__ void sum_floats_of_a_warp_by_swaps(const float* x, float* out) {
  __shared__ unsigned long long total;
  if (threadIdx.x == 0) total = 0;
  __syncwarp();
  unsigned long long old = *static_cast<volatile unsigned long long*>(&total), seen;
  do {
    seen = old;
    old = atomicCAS(&total, seen, __double_as_longlong(__longlong_as_double(seen) + 0.1 * x[threadIdx.x]));
  } while (old != seen);
  __syncwarp();
  out[threadIdx.x] = static_cast<float>(__longlong_as_double(total));
}
// What is there is taken out and put back with more.
extern "C" __global__ void sum_floats_by_exchanges(const float* x, float* out) {
  if (threadIdx.x != 0) return;
  float mine = x[blockIdx.x];
  do {
    mine = atomicExch(out, atomicExch(out, 0.0f) + mine);
  } while (mine != 0.0f);
}
