// Kernels of ours, in PTX: what tests a GPU, empties its caches, keeps it busy.
//
//   canary(at)                           element i of 256 becomes 3 * x + i: a known answer
//   nothing()                            what a launch costs by itself
//   sweep(at, words)                     reads words of 16 bytes: what else was in the caches is out
//   noise(at, words, keep, set)          words of 4 bytes become (hash & keep) | set: numbers to multiply
//   hog(at, words, nanoseconds)          reads and writes words of 16 bytes again and again
//   occupy(nanoseconds)                  holds the processors that it gets
//
// All but `canary` (one block of 256 threads) take any grid.
#pragma once

namespace assay::gpu {

extern const char* const kToolsPtx;

}  // namespace assay::gpu
