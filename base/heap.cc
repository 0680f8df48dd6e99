#include "base/heap.h"

#include <malloc.h>

#include <algorithm>
#include <climits>

namespace assay {

void KeepFreedMemory(std::size_t kept) {
  constexpr int kMostOfTheHeap = 32 << 20;  // What mallopt takes.
  ::mallopt(M_MMAP_THRESHOLD, kMostOfTheHeap);
  ::mallopt(M_TRIM_THRESHOLD, static_cast<int>(std::min<std::size_t>(kept, INT_MAX)));
  ::mallopt(M_TOP_PAD, 2 << 20);
}

}  // namespace assay
