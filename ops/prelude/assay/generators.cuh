// What generators of inputs are made of: places that are distinct, offsets of ragged rows, one-hot rows,
// pages, masks, angles. Inputs whose values belong together (docs/ops.md, "Inputs that belong to others")
// are written with them, one thread an element:
//
//   #include "assay/generators.cuh"
//   __global__ void slots(const T* x, Out<long long>* slot, int64 tokens, int64 slots, int64 hidden) {
//     const int64 i = thread_index();
//     if (i >= tokens) return;
//     slot[i] = Real(assay::permuted(i, slots, assay::seed_of(x, tokens * hidden)));
//   }
//
// Nothing here keeps state or has an order: an element follows from its number, the extents and a seed,
// and the seed from what other inputs of the case hold. So a case says everything, shrunk ones too.
#pragma once

#include "assay/reference.cuh"

namespace assay {

using uint64 = unsigned long long;

/// A number that looks random, for each number (the finaliser of splitmix64).
ASSAY_DEVICE uint64 scrambled(uint64 x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

ASSAY_DEVICE uint64 bits_of_element(double x) { return bits_of(x); }
ASSAY_DEVICE uint64 bits_of_element(float x) { return bits_of(static_cast<double>(x)); }
ASSAY_DEVICE uint64 bits_of_element(f32 x) { return bits_of_element(x.number); }
ASSAY_DEVICE uint64 bits_of_element(bf16 x) { return x.bits; }
ASSAY_DEVICE uint64 bits_of_element(f16 x) { return x.bits; }
ASSAY_DEVICE uint64 bits_of_element(f8e4m3 x) { return x.bits; }
ASSAY_DEVICE uint64 bits_of_element(f8e5m2 x) { return x.bits; }
ASSAY_DEVICE uint64 bits_of_element(int64 x) { return static_cast<uint64>(x); }
ASSAY_DEVICE uint64 bits_of_element(int x) { return static_cast<uint64>(x); }
ASSAY_DEVICE uint64 bits_of_element(signed char x) { return static_cast<uint64>(x); }
ASSAY_DEVICE uint64 bits_of_element(unsigned char x) { return x; }
ASSAY_DEVICE uint64 bits_of_element(short x) { return static_cast<uint64>(x); }
ASSAY_DEVICE uint64 bits_of_element(unsigned short x) { return x; }
ASSAY_DEVICE uint64 bits_of_element(unsigned int x) { return x; }
ASSAY_DEVICE uint64 bits_of_element(unsigned long long x) { return x; }
ASSAY_DEVICE uint64 bits_of_element(bool x) { return x ? 1 : 0; }

/// A seed that follows from at most 32 elements of a tensor of n.
template <class X>
ASSAY_DEVICE uint64 seed_of(const X* x, int64 n) {
  uint64 seed = scrambled(static_cast<uint64>(n));
  const int64 step = n > 32 ? n / 32 : 1;
  for (int64 i = 0; i < n && i < 32 * step; i += step) seed = scrambled(seed ^ bits_of_element(x[i]));
  return seed;
}

/// The i-th of [0, n) in an order that the seed says: i below n gives each number once. In order for an
/// eighth of all seeds.
ASSAY_DEVICE int64 permuted(int64 i, int64 n, uint64 seed) {
  if (n < 2 || seed % 8 == 0) return i;
  int bits = 1;
  while ((int64(1) << bits) < n) ++bits;
  const uint64 mask = (1ull << bits) - 1;
  const int shift = bits / 2 + 1;
  uint64 x = static_cast<uint64>(i);
  // Each step permutes [0, 2^bits); what falls outside of n goes on.
  do {
    for (int round = 0; round < 3; ++round) {
      const uint64 key = scrambled(seed + static_cast<uint64>(round));
      x = (x * (key | 1) + (key >> 32)) & mask;
      x ^= x >> shift;
    }
  } while (x >= static_cast<uint64>(n));
  return static_cast<int64>(x);
}

/// Where ragged row i of `rows` begins among `total` elements, and, for i = rows, the end: 0 at the first,
/// total at the last, never falling. Even, front- or back-heavy, all in one row, or with empty rows
/// between, as the seed says.
ASSAY_DEVICE int64 offset_of(int64 i, int64 rows, int64 total, uint64 seed) {
  if (i <= 0) return 0;
  if (i >= rows) return total;
  const double share = static_cast<double>(i) / static_cast<double>(rows);
  switch (seed % 5) {
    case 0: return static_cast<int64>(share * static_cast<double>(total));
    case 1: return static_cast<int64>(share * share * static_cast<double>(total));
    case 2: return static_cast<int64>(::sqrt(share) * static_cast<double>(total));
    case 3: return i > static_cast<int64>((seed >> 8) % static_cast<uint64>(rows)) ? total : 0;
    default: {
      const double end = static_cast<double>(i + 1) / static_cast<double>(rows);
      const auto low = static_cast<int64>(share * static_cast<double>(total));
      const auto high = static_cast<int64>(end * static_cast<double>(total));
      return low + static_cast<int64>(scrambled(seed ^ static_cast<uint64>(i)) %
                                      static_cast<uint64>(high - low + 1));
    }
  }
}

/// The class of row i: which column of a one-hot row is 1.
ASSAY_DEVICE int64 class_of(int64 i, int64 classes, uint64 seed) {
  return static_cast<int64>(scrambled(seed ^ static_cast<uint64>(i)) % static_cast<uint64>(classes));
}

/// Page of block `block` of sequence `sequence`: distinct while there are pages enough, else used again.
ASSAY_DEVICE int64 page_of(int64 sequence, int64 block, int64 blocks, int64 pages, uint64 seed) {
  return permuted((sequence * blocks + block) % pages, pages, seed);
}

/// Does a causal mask show this key to this query? The last query sees all keys.
ASSAY_DEVICE bool causal(int64 query, int64 key, int64 queries, int64 keys) {
  return key <= query + keys - queries;
}

/// The i-th of n numbers between low and high that never fall, some of them equal.
ASSAY_DEVICE double ascending(int64 i, int64 n, double low, double high, uint64 seed) {
  const double step = (high - low) / static_cast<double>(n);
  const double part = static_cast<double>(scrambled(seed ^ static_cast<uint64>(i)) >> 11) * 0x1p-53;
  return low + step * (static_cast<double>(i) + (seed % 4 == 0 ? 0.5 : part));
}

/// The angle of a rotary embedding: position times base^(-2 pair / dim).
ASSAY_DEVICE double rope_angle(int64 position, int64 pair, int64 dim, double base) {
  return static_cast<double>(position) *
         ::pow(base, -2.0 * static_cast<double>(pair) / static_cast<double>(dim));
}

}  // namespace assay
