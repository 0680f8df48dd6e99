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
