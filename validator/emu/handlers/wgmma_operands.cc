#include <algorithm>
#include <bit>
#include <cstring>

#include "validator/emu/handlers/wgmma.h"
#include "validator/emu/watch/machine_memory.h"

namespace assay::emu {
namespace {

constexpr std::uint32_t kChunkBytes = 16;
constexpr int kRowsPerGroup = 8;

/// Reports the reads of `lanes` as an agent's of its own, one event a region.
void IssueReads(CoreWarp& warp, const Decoded& op, const LaneAccess& access, LaneMask lanes,
                std::vector<std::uint64_t>& tokens) {
  while (lanes != 0) {
    const MemoryRegion* const region = access.RegionOf(std::countr_zero(lanes));
    alignas(64) std::uint64_t offsets[kWarpSize] = {};
    WarpAccess event;
    event.warp = warp.number;
    event.region = region->race_region;
    event.offsets = offsets;
    event.bytes = kChunkBytes;
    event.element_bytes = kChunkBytes;
    event.pc = warp.PcOf(op);
    for (LaneMask rest = lanes; rest != 0; rest &= rest - 1) {
      const int lane = std::countr_zero(rest);
      if (access.RegionOf(lane) != region) continue;
      event.lanes |= LaneMask{1} << lane;
      offsets[lane] =
          static_cast<std::uint64_t>(access.at(lane) - region->data) + region->race_offset;
    }
    lanes &= ~event.lanes;
    tokens.push_back(warp.device->race->OnBulkIssue(&event, nullptr));
  }
}

}  // namespace

MatrixDescriptor UnpackDescriptor(std::uint64_t word) {
  constexpr int kSwizzles[] = {0, 3, 2, 1};
  MatrixDescriptor descriptor;
  descriptor.start = (word & 0x3fff) << 4;
  descriptor.leading = (word >> 16 & 0x3fff) << 4;
  descriptor.stride = (word >> 32 & 0x3fff) << 4;
  descriptor.base_offset = static_cast<int>(word >> 49 & 7);
  descriptor.swizzle = kSwizzles[word >> 62];
  return descriptor;
}

std::uint64_t ChunkAddress(const MatrixDescriptor& descriptor, bool k_major, int outer, int k) {
  const std::uint64_t wide = std::uint64_t{1} << descriptor.swizzle;  // Chunks of a swizzled row.
  const auto o = static_cast<std::uint64_t>(outer);
  const auto l = static_cast<std::uint64_t>(k);
  std::uint64_t address = descriptor.start;
  if (k_major) {
    address += o / kRowsPerGroup * descriptor.stride + o % kRowsPerGroup * wide * kChunkBytes;
    address += descriptor.swizzle == 0 ? l * descriptor.leading : l * kChunkBytes;
  } else if (descriptor.swizzle == 0) {
    address += o * descriptor.stride + l % kRowsPerGroup * kChunkBytes +
               l / kRowsPerGroup * descriptor.leading;
  } else {
    address += o % wide * kChunkBytes + o / wide * descriptor.leading +
               l % kRowsPerGroup * wide * kChunkBytes + l / kRowsPerGroup * descriptor.stride;
  }
  // Read off an H200: the base offset is the row, of 128 bytes, at which the pattern begins.
  const auto row = (address >> 7) - static_cast<std::uint64_t>(descriptor.base_offset);
  return address ^ (row & (wide - 1)) << 4;
}

bool ReadShared(CoreWarp& warp, const Decoded& op, const MatrixDescriptor& descriptor,
                const SharedMatrix& matrix, bool by_columns, std::uint32_t* out,
                UndefinedOuter& undefined, std::vector<std::uint64_t>& tokens) {
  const int per_chunk = 128 / matrix.element_bits;
  // Chunks by outer, then by k; a chunk holds elements along the major dimension.
  const int chunks_outer = matrix.k_major ? matrix.outer : matrix.outer / per_chunk;
  const int chunks_k = matrix.k_major ? matrix.k / per_chunk : matrix.k;
  const int first = matrix.k_major ? matrix.first : matrix.first / per_chunk;
  const int total = chunks_outer * chunks_k;
  const auto place = [&](int i, int l) {
    return static_cast<std::size_t>(by_columns ? l * matrix.outer + i : i * matrix.k + l);
  };
  undefined.at.assign(static_cast<std::size_t>(matrix.outer), false);
  for (int begin = 0; begin < total; begin += kWarpSize) {
    const int count = std::min(kWarpSize, total - begin);
    const LaneMask lanes = count == kWarpSize ? kAllLanes : (LaneMask{1} << count) - 1;
    LaneAccess access;
    for (int i = 0; i < kWarpSize; ++i) {
      const int chunk = begin + std::min(i, count - 1);
      access.address[i] =
          ChunkAddress(descriptor, matrix.k_major, first + chunk / chunks_k, chunk % chunks_k);
    }
    if (!Resolve(warp, op, ptx::Space::kShared, lanes, kChunkBytes, AccessType::kLoad, access))
      return false;
    const LaneMask bad =
        warp.device->track_defined ? UndefinedLanes(warp, access, 0, kChunkBytes) : 0;
    if (warp.device->race) IssueReads(warp, op, access, lanes, tokens);
    for (int i = 0; i < count; ++i) {
      const int chunk = begin + i;
      const int outer = chunk / chunks_k;
      const int k = chunk % chunks_k;
      for (int e = 0; e < per_chunk; ++e) {
        std::uint32_t element = 0;
        const auto bytes = static_cast<std::size_t>(matrix.element_bits) / 8;
        std::memcpy(&element, access.at(i) + static_cast<std::size_t>(e) * bytes, bytes);
        const int row = matrix.k_major ? outer : outer * per_chunk + e;
        const int column = matrix.k_major ? k * per_chunk + e : k;
        out[place(row, column)] = element;
        if ((bad >> i & 1) != 0) {
          const auto offset = static_cast<std::uint32_t>(static_cast<std::size_t>(e) * bytes);
          const LaneMask self = LaneMask{1} << i;
          if ((UndefinedLanes(warp, access, offset, static_cast<std::uint32_t>(bytes)) & self) == 0)
            continue;
          undefined.at[static_cast<std::size_t>(row)] = true;
          const LoadedChoice choice =
              ChoiceLoaded(warp, op, access, offset, static_cast<std::uint32_t>(bytes), self);
          undefined.Add(choice.chosen != 0, choice.origin);
        }
      }
    }
  }
  return true;
}

}  // namespace assay::emu
