// FrameMemory: where large register files of a launch's warps lie.
//
// Unrolled code names thousands of registers, of which a warp that has nothing to do touches a few; and where all blocks of a
// grid must be resident there are thousands of such warps. To fill their files, and to ask the system for the memory anew, took
// most of a small case. So memory is kept for the next launch of the thread, and holds what was left there.
#pragma once

#include <cstddef>
#include <vector>

namespace assay::emu {

class FrameMemory {
 public:
  FrameMemory() = default;
  ~FrameMemory() { Clear(); }
  FrameMemory(const FrameMemory&) = delete;
  FrameMemory& operator=(const FrameMemory&) = delete;

  /// So many bytes that hold anything, aligned to a slot. They stay until Clear. Throws std::bad_alloc.
  std::byte* Take(std::size_t bytes);
  void Clear();

 private:
  struct Chunk {
    std::byte* data = nullptr;
    std::size_t bytes = 0, used = 0;
  };
  /// Chunks that nobody uses, of a thread; given back to the system when it ends.
  struct Kept {
    ~Kept();
    std::vector<Chunk> chunks;
    std::size_t bytes = 0;
  };
  static Kept& kept();

  std::vector<Chunk> chunks_;
};

}  // namespace assay::emu
