// How many blocks a GPU hands out a cycle: grids of blocks that do nothing, by their size. One JSON
// document on stdout.
//
//   nvcc -O2 -arch=native -o hand_out bench/cost/hand_out.cu && ./hand_out
#include <cstdio>

__global__ void nothing() {}

__global__ void count_cycles(long long* cycles, long long nanoseconds) {
  long long began, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(began));
  const long long first = clock64();
  do {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (now - began < nanoseconds);
  *cycles = clock64() - first;
}

int main() {
  cudaDeviceProp device;
  int driver = 0;
  if (cudaGetDeviceProperties(&device, 0) != cudaSuccess) return 1;
  cudaDriverGetVersion(&driver);
  long long* cycles = nullptr;
  cudaMalloc(&cycles, sizeof *cycles);
  cudaEvent_t begin, end;
  cudaEventCreate(&begin);
  cudaEventCreate(&end);
  std::printf("{\"device\": \"%s\", \"cuda\": %d, \"rows\": [", device.name, driver);
  bool first = true;
  for (const unsigned threads : {32u, 64u, 128u, 256u, 512u, 1024u}) {
    for (const unsigned blocks : {1u << 18, 1u << 20, 1u << 22}) {
      float best = 0;
      for (int i = 0; i < 5; ++i) {
        cudaEventRecord(begin);
        nothing<<<blocks, threads>>>();
        cudaEventRecord(end);
        cudaDeviceSynchronize();
        float milliseconds = 0;
        cudaEventElapsedTime(&milliseconds, begin, end);
        if (i == 0 || milliseconds < best) best = milliseconds;
      }
      // Right behind it: the clock that it ran at.
      constexpr long long kNanoseconds = 2000000;
      count_cycles<<<1, 1>>>(cycles, kNanoseconds);
      long long counted = 0;
      cudaMemcpy(&counted, cycles, sizeof counted, cudaMemcpyDeviceToHost);
      const double clock = static_cast<double>(counted) / kNanoseconds * 1e9;
      std::printf("%s\n {\"threads\": %u, \"blocks\": %u, \"us\": %.2f, \"clock_mhz\": %.0f, \"blocks_a_cycle\": %.3f}",
                  first ? "" : ",", threads, blocks, best * 1e3, clock * 1e-6,
                  blocks / (best * 1e-3 * clock));
      first = false;
    }
  }
  std::printf("\n]}\n");
  return cudaGetLastError() == cudaSuccess ? 0 : 1;
}
