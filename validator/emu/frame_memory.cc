#include "validator/emu/frame_memory.h"

#include <algorithm>
#include <new>

#include "validator/emu/exec.h"

namespace assay::emu {
namespace {

constexpr std::size_t kChunk = std::size_t{4} << 20;
// A grid of a thousand warps that must be resident has files of half a gigabyte.
constexpr std::size_t kMostKept = std::size_t{768} << 20;

constexpr std::align_val_t kAligned{kSlotBytes};

void GiveBack(std::byte* data) { ::operator delete[](data, kAligned); }

}  // namespace

FrameMemory::Kept::~Kept() {
  for (const Chunk& chunk : chunks) GiveBack(chunk.data);
}

FrameMemory::Kept& FrameMemory::kept() {
  thread_local Kept kept;
  return kept;
}

std::byte* FrameMemory::Take(std::size_t bytes) {
  bytes = (bytes + kSlotBytes - 1) / kSlotBytes * kSlotBytes;
  if (chunks_.empty() || chunks_.back().bytes - chunks_.back().used < bytes) {
    Kept& pool = kept();
    if (!pool.chunks.empty() && pool.chunks.back().bytes >= bytes) {
      pool.bytes -= pool.chunks.back().bytes;
      chunks_.push_back(pool.chunks.back());
      pool.chunks.pop_back();
    } else {
      const std::size_t size = std::max(kChunk, bytes);
      chunks_.push_back({static_cast<std::byte*>(::operator new[](size, kAligned)), size, 0});
    }
  }
  Chunk& chunk = chunks_.back();
  std::byte* const taken = chunk.data + chunk.used;
  chunk.used += bytes;
  return taken;
}

void FrameMemory::Clear() {
  Kept& pool = kept();
  for (Chunk& chunk : chunks_) {
    if (chunk.bytes > kChunk || pool.bytes + chunk.bytes > kMostKept) {
      GiveBack(chunk.data);
      continue;
    }
    chunk.used = 0;
    pool.bytes += chunk.bytes;
    pool.chunks.push_back(chunk);
  }
  chunks_.clear();
}

}  // namespace assay::emu
