// cp.async.bulk.tensor, cp.reduce.async.bulk.tensor and their prefetch, tile mode (PTX ISA 9.7.9.25.5).
//
// A box of a tensor moves between global and shared memory, where it lies packed, dimension 0
// innermost, with address bits exchanged by its swizzle. What lies outside of the tensor reads as the
// fill value and is never written. im2col is not modelled and refused at load.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "validator/emu/handlers/async_copy.h"
#include "validator/emu/handlers/bulk.h"
#include "validator/emu/handlers/combine.h"
#include "validator/emu/handlers/partial_rows.h"
#include "validator/emu/scheduler.h"
#include "validator/emu/tensor_map.h"
#include "validator/emu/watch/machine_memory.h"

namespace assay::emu {
namespace {

using ptx::Instruction;
using ptx::Mod;
using ptx::Opcode;
using ptx::Space;

constexpr std::uint32_t kPiece = 16;  ///< Swizzling moves pieces of so many bytes.
constexpr std::uint32_t kSharedAlignment = 128;
constexpr std::uint64_t kMaxBoxBytes = 228 * 1024;

using Coordinates = std::array<std::int64_t, kMaxTensorRank>;

/// The map that operand `at` names, and the coordinates behind it.
bool ReadMap(CoreWarp& warp, const Decoded& op, std::size_t at, int lane, TensorMap& map,
             Coordinates& first) {
  LaneAccess access;
  std::fill(std::begin(access.address), std::end(access.address),
            BulkAddress(warp, op.operands[at], lane));
  if (!Resolve(warp, op, Space::kGeneric, LaneMask{1} << lane, kTensorMapBytes, AccessType::kLoad,
               access, 64))
    return false;
  TensorMapImage image;
  std::memcpy(image.data(), access.at(lane), image.size());
  const auto rank = static_cast<std::uint32_t>(op.immediate);
  if (!Unpack(image, map)) {
    BulkMisuse(warp, op, lane,
               "the address of a tensor copy names no tensor map (a kernel argument of 128 bytes)");
    return false;
  }
  if (map.rank != rank || map.box_bytes() > kMaxBoxBytes) {
    BulkMisuse(
        warp, op, lane,
        fmt::format("a tensor copy of {} dimensions with a map of {}, whose box has {} bytes", rank,
                    map.rank, map.box_bytes()));
    return false;
  }
  first.fill(0);
  for (std::uint32_t d = 0; d < rank; ++d)
    first[d] = warp.Lanes<std::int32_t>(op.operands[at + 1 + d].slot)[lane];
  // Not in the manual: an H200 stops with an illegal instruction.
  if (first[0] * map.element_bytes % kPiece != 0) {
    BulkMisuse(warp, op, lane,
               fmt::format("a tensor copy that begins {} bytes into its innermost dimension: that "
                           "must be a multiple of {}",
                           first[0] * map.element_bytes, kPiece));
    return false;
  }
  return true;
}

/// A row of the box: where it begins in the packed box, and the part of it inside of the tensor.
struct Row {
  std::uint64_t packed = 0;   ///< Bytes from the box's start.
  std::uint64_t address = 0;  ///< Of the first byte inside.
  std::uint32_t skip = 0;     ///< Bytes of the row before that.
  std::uint32_t bytes = 0;    ///< Inside; 0: none.
};

std::vector<Row> RowsOf(const TensorMap& map, const Coordinates& first) {
  std::vector<Row> rows;
  std::uint64_t count = 1;
  for (std::uint32_t d = 1; d < map.rank; ++d) count *= map.box[d];
  const std::uint64_t pitch = std::uint64_t{map.box[0]} * map.element_bytes;
  const auto inner = static_cast<std::int64_t>(map.size[0]);
  const std::int64_t low = std::clamp<std::int64_t>(-first[0], 0, map.box[0]);
  const std::int64_t high = std::clamp<std::int64_t>(inner - first[0], low, map.box[0]);
  for (std::uint64_t r = 0; r < count; ++r) {
    Row row{.packed = r * pitch};
    std::uint64_t rest = r;
    std::uint64_t offset = 0;
    bool inside = high > low;
    for (std::uint32_t d = 1; d < map.rank; ++d) {
      const std::int64_t at = first[d] + static_cast<std::int64_t>(rest % map.box[d]);
      rest /= map.box[d];
      inside = inside && at >= 0 && static_cast<std::uint64_t>(at) < map.size[d];
      offset += static_cast<std::uint64_t>(at) * map.stride[d];
    }
    if (inside) {
      row.skip = static_cast<std::uint32_t>(low) * map.element_bytes;
      row.bytes = static_cast<std::uint32_t>(high - low) * map.element_bytes;
      row.address =
          map.address + offset + static_cast<std::uint64_t>(first[0] + low) * map.element_bytes;
    }
    rows.push_back(row);
  }
  return rows;
}

/// The box in shared memory, one lane's.
class SharedBox {
 public:
  SharedBox(const TensorMap& map, const Side& side, int lane)
      : map_(map),
        data_(side.access.at(lane)),
        region_(*side.access.RegionOf(lane)),
        start_(static_cast<std::uint64_t>(data_ - region_.data)),
        address_(side.access.address[lane] & kSharedOffsetMask) {}

  /// Byte of the box that packed byte `packed` (a multiple of a piece) moves to.
  std::uint64_t Place(std::uint64_t packed) const {
    const std::uint64_t mask = (std::uint64_t{1} << map_.swizzle) - 1;
    const std::uint64_t at = address_ + packed;
    return (at ^ ((at >> 7) & mask) << 4) - address_;
  }
  std::byte* at(std::uint64_t packed) const {
    return data_ + Place(packed / kPiece * kPiece) + packed % kPiece;
  }
  /// Of the region.
  std::uint64_t Offset(std::uint64_t packed) const {
    return start_ + Place(packed / kPiece * kPiece) + packed % kPiece;
  }
  MemoryRegion& region() const { return region_; }

 private:
  const TensorMap& map_;
  std::byte* data_;
  MemoryRegion& region_;
  std::uint64_t start_;
  std::uint64_t address_;
};

/// A swizzled box must end where its pattern does, or pieces would leave it.
bool BoxFits(CoreWarp& warp, const Decoded& op, int lane, const TensorMap& map) {
  if (map.swizzle == 0 || map.box_bytes() % kSharedAlignment == 0) return true;
  BulkMisuse(warp, op, lane,
             fmt::format("a swizzled box of {} bytes: the size must be a multiple of {}",
                         map.box_bytes(), kSharedAlignment));
  return false;
}

/// The element that stands for what is outside of the tensor. An H200 fills with one NaN of 16 bits,
/// over and over, whatever the type.
std::uint64_t FillOf(const TensorMap& map) { return map.fill_nan ? 0x7ff77ff77ff77ff7 : 0; }

std::uint64_t Issue(CoreWarp& warp, const WarpAccess* read, const WarpAccess* write) {
  return warp.device->race ? warp.device->race->OnBulkIssue(read, write) : 0;
}

/// Where the machine chose what a tensor copy moves: in shared memory, and in the tensor.
struct ChosenBoxes {
  ChosenPlaces shared, tensor;
  ChosenBoxes(CoreWarp& warp, const Decoded& op, std::size_t shared_at, std::size_t map_at)
      : shared(CheckCopyAddress(warp, op, op.operands[shared_at], warp.exec)) {
    for (std::size_t d = 0; d < op.immediate; ++d)
      tensor = Either(tensor, CheckCopyNumber(warp, op, op.operands[map_at + 1 + d], warp.exec));
  }
};

/// Bytes [at, at + bytes) of a copy.
CopiedBytes PartOf(const CopiedBytes& copied, std::uint64_t at, std::uint32_t bytes) {
  CopiedBytes part;
  if (copied.AllDefined()) return part;
  const auto first = copied.states.begin() + static_cast<std::ptrdiff_t>(at);
  part.states.assign(first, first + bytes);
  return part;
}

bool LoadBox(CoreWarp& warp, const Decoded& op, const ChosenBoxes& chosen, int lane,
             const TensorMap& map, const Coordinates& first, std::uint64_t address,
             std::uint64_t barrier) {
  const auto box_bytes = static_cast<std::uint32_t>(map.box_bytes());
  Side to;
  if (!ResolveSide(warp, op, Space::kSharedCluster, address, lane, box_bytes, true, to,
                   kSharedAlignment))
    return false;
  const SharedBox box(map, to, lane);
  const std::uint64_t fill = FillOf(map);
  const std::uint32_t width = map.element_bytes;
  const std::uint32_t pitch = map.box[0] * width;
  const auto put = [&](std::uint64_t packed, std::uint32_t bytes, const CopiedBytes& copied) {
    PutBytes(warp, warp.PcOf(op), lane, box.region(), box.Offset(packed), bytes, copied);
  };
  CopiedBytes filled;
  if (chosen.tensor.Holds(lane)) filled.Choose(width, NumberOf(*warp.device, chosen.tensor));
  std::vector<std::uint64_t> tokens = {Issue(warp, nullptr, &to.event)};
  for (const Row& row : RowsOf(map, first)) {
    for (std::uint32_t at = 0; at < pitch; at += width) {
      if (at >= row.skip && at < row.skip + row.bytes) continue;
      std::memcpy(box.at(row.packed + at), &fill, width);
      put(row.packed + at, width, filled);
    }
    if (row.bytes == 0) continue;
    Side from;
    if (!ResolveSide(warp, op, Space::kGlobal, row.address, lane, row.bytes, false, from, width))
      return false;
    const MemoryRegion& source = *from.access.RegionOf(lane);
    if (source.writable) tokens.push_back(Issue(warp, &from.event, nullptr));
    const CopiedBytes taken = BytesTaken(warp, chosen.tensor, from, lane, row.bytes);
    for (std::uint32_t at = 0; at < row.bytes;) {
      const std::uint64_t packed = row.packed + row.skip + at;
      const auto bytes =
          std::min(static_cast<std::uint32_t>(kPiece - packed % kPiece), row.bytes - at);
      std::memcpy(box.at(packed), from.access.at(lane) + at, bytes);
      put(packed, bytes, PartOf(taken, at, bytes));
      at += bytes;
    }
    warp.device->counters.bytes_read += row.bytes;
  }
  if (chosen.shared.Holds(lane))
    StoreAtChosenPlace(warp, warp.PcOf(op), lane, box.region(), box.Offset(0), box_bytes,
                       chosen.shared.open[static_cast<std::size_t>(lane)], chosen.shared.origin);
  warp.device->last_progress = warp.device->counters.steps;
  return CompleteTransfer(warp, op, lane, barrier, box_bytes, tokens);
}

/// operands: destination, map, coordinates, mbarrier, optional block mask. `immediate`: dimensions.
void CopyToShared(Warp& base, const Decoded& op) {
  CoreWarp& warp = Core(base);
  const bool multicast = op.source->Has(Mod::kMulticastCluster);
  const std::size_t barrier_at = 2 + static_cast<std::size_t>(op.immediate);
  const ChosenBoxes chosen(warp, op, 0, 1);
  for (LaneMask rest = warp.exec; rest != 0 && warp.outcome != Outcome::kStop; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    TensorMap map;
    Coordinates first;
    if (!ReadMap(warp, op, 1, lane, map, first) || !BoxFits(warp, op, lane, map)) return;
    const std::uint64_t to = BulkAddress(warp, op.operands[0], lane);
    const std::uint64_t barrier = BulkAddress(warp, op.operands[barrier_at], lane);
    if (!multicast) {
      if (!LoadBox(warp, op, chosen, lane, map, first, to, barrier)) return;
      continue;
    }
    std::uint32_t ranks = warp.Lanes<std::uint16_t>(op.operands[barrier_at + 1].slot)[lane];
    for (; ranks != 0; ranks &= ranks - 1) {
      const auto rank = static_cast<std::uint32_t>(std::countr_zero(ranks));
      if (!LoadBox(warp, op, chosen, lane, map, first, InBlock(to, rank), InBlock(barrier, rank)))
        return;
    }
  }
}

/// operands: map, coordinates, source.
void CopyToGlobal(Warp& base, const Decoded& op) {
  CoreWarp& warp = Core(base);
  const bool reduces = op.source->opcode == Opcode::kCpReduceAsyncBulkTensor;
  const ChosenBoxes chosen(warp, op, 1 + static_cast<std::size_t>(op.immediate), 0);
  for (LaneMask rest = warp.exec; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    TensorMap map;
    Coordinates first;
    if (!ReadMap(warp, op, 0, lane, map, first) || !BoxFits(warp, op, lane, map)) return;
    const Combine combine = reduces ? CombinerOf(*op.source, map.type) : nullptr;
    if (reduces && combine == nullptr) {
      return BulkMisuse(warp, op, lane,
                        "a reduction that does not exist for the tensor's elements");
    }
    Side from;
    const std::uint64_t address =
        BulkAddress(warp, op.operands[1 + static_cast<std::size_t>(op.immediate)], lane);
    if (!ResolveSide(warp, op, Space::kShared, address, lane,
                     static_cast<std::uint32_t>(map.box_bytes()), false, from, kSharedAlignment))
      return;
    const SharedBox box(map, from, lane);
    std::vector<std::uint64_t>& tokens =
        GroupsOf(warp).lanes[static_cast<std::size_t>(lane)].bulk_open;
    tokens.push_back(Issue(warp, &from.event, nullptr));
    const std::uint32_t width = map.element_bytes;
    for (const Row& row : RowsOf(map, first)) {
      if (row.bytes == 0) continue;
      Side to;
      if (!ResolveSide(warp, op, Space::kGlobal, row.address, lane, row.bytes, true, to, width))
        return;
      to.event.element_bytes = width;
      if (reduces) {
        to.event.kind = AccessKind::kReadWrite;
        to.event.atomic = true;
        to.event.order = Order::kRelaxed;
        to.event.scope = Scope::kGpu;
        to.event.returns_value = false;
      }
      tokens.push_back(Issue(warp, nullptr, &to.event));
      CopiedBytes moved;
      for (std::uint32_t at = 0; at < row.bytes; at += width) {
        const std::uint64_t packed = row.packed + row.skip + at;
        const CopiedBytes element = BytesOf(box.region(), box.Offset(packed), width);
        if (reduces) {
          combine(to.access.at(lane) + at, box.at(packed), true);
        } else {
          std::memcpy(to.access.at(lane) + at, box.at(packed), width);
        }
        if (element.AllDefined()) continue;
        moved.states.resize(row.bytes, 1);
        std::ranges::copy(element.states, moved.states.begin() + static_cast<std::ptrdiff_t>(at));
      }
      if (chosen.shared.Holds(lane)) moved.Choose(row.bytes, NumberOf(*warp.device, chosen.shared));
      if (reduces) moved = Combined(moved, BytesTaken(warp, {}, to, lane, row.bytes));
      PutCopied(warp, op, chosen.tensor, to, lane, row.bytes, moved);
      warp.device->counters.bytes_written += row.bytes;
    }
    warp.device->last_progress = warp.device->counters.steps;
    if (reduces) {
      warp.device->counters.used_atomics = true;
      warp.device->NoteMeeting();
    }
  }
}

void Nothing(Warp&, const Decoded&) {}

Handler AsMemory(Decoded& decoded, Handler handler) {
  decoded.flags |= kFlagMemory;
  decoded.propagate = kPropagateSelf;
  return handler;
}

std::size_t DimensionsOf(const Instruction& in) {
  constexpr Mod kDims[] = {Mod::kDim1d, Mod::kDim2d, Mod::kDim3d, Mod::kDim4d, Mod::kDim5d};
  for (std::size_t i = 0; i < std::size(kDims); ++i) {
    if (in.Has(kDims[i])) return i + 1;
  }
  return 0;
}

bool IsTile(const Instruction& in) { return !in.Has(Mod::kIm2col) && !in.Has(Mod::kIm2colNoOffs); }

Handler ResolveCopy(const Instruction& in, Decoded& decoded) {
  const std::size_t dimensions = DimensionsOf(in);
  if (in.Has(Mod::kL2CacheHint)) --decoded.operand_count;
  if (!IsTile(in) || dimensions == 0) return nullptr;
  decoded.immediate = dimensions;
  const bool to_global = in.Has(Mod::kBulkGroup);
  const std::size_t map_at = to_global ? 0 : 1;
  const bool multicast = in.Has(Mod::kMulticastCluster);
  const std::size_t operands = dimensions + 2 + (to_global ? 0u : 1u) + (multicast ? 1u : 0u);
  if (decoded.operand_count != operands) return nullptr;
  for (std::size_t d = 0; d < dimensions; ++d) {
    const DecodedOperand& coordinate = decoded.operands[map_at + 1 + d];
    if (coordinate.kind != DecodedOperand::Kind::kSlot || coordinate.bits != 32) return nullptr;
  }
  if (multicast && decoded.operands[operands - 1].bits != 16) return nullptr;
  return AsMemory(decoded, to_global ? &CopyToGlobal : &CopyToShared);
}

Handler ResolvePrefetch(const Instruction& in, Decoded& decoded) {
  decoded.propagate = kPropagateSelf;
  return IsTile(in) ? &Nothing : nullptr;
}

constexpr ResolverRow kRows[] = {
    {Opcode::kCpAsyncBulkTensor, &ResolveCopy},
    {Opcode::kCpReduceAsyncBulkTensor, &ResolveCopy},
    {Opcode::kCpAsyncBulkPrefetchTensor, &ResolvePrefetch},
};

}  // namespace

std::span<const ResolverRow> TensorRows() { return kRows; }

}  // namespace assay::emu
