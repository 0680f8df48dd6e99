// st.async, red.async and cp.reduce.async.bulk (PTX ISA 9.7.9.12, 9.7.13.7, 9.7.9.25.4.2).
//
// Like bulk copies they are done when issued, and an mbarrier or a bulk group says who may rely on it.
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

namespace assay::emu {
namespace {

using ptx::Instruction;
using ptx::Mod;
using ptx::Opcode;
using ptx::Space;

void AsReduction(Side& side, std::uint32_t element_bytes) {
  side.event.kind = AccessKind::kReadWrite;
  side.event.atomic = true;
  side.event.order = Order::kRelaxed;
  side.event.scope = Scope::kGpu;
  side.event.returns_value = false;
  side.event.element_bytes = element_bytes;
}

/// operands: address, the values, mbarrier.
void StoreAsync(Warp& base, const Decoded& op) {
  CoreWarp& warp = Core(base);
  const std::size_t count = op.operand_count - 2u;
  const auto width = static_cast<std::uint32_t>(ptx::BitsOf(op.source->type()) / 8);
  const auto bytes = static_cast<std::uint32_t>(count) * width;
  const bool reduces = op.source->opcode == Opcode::kRedAsync;
  const Combine combine = reduces ? CombinerOf(*op.source, op.source->type()) : nullptr;
  const ChosenPlaces put = CheckCopyAddress(warp, op, op.operands[0], warp.exec);
  for (LaneMask rest = warp.exec; rest != 0 && warp.outcome != Outcome::kStop; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    Side to;
    if (!ResolveSide(warp, op, Space::kSharedCluster, BulkAddress(warp, op.operands[0], lane), lane,
                     bytes, true, to, bytes))
      return;
    to.event.element_bytes = width;
    if (reduces) AsReduction(to, width);
    const std::uint64_t token =
        warp.device->race ? warp.device->race->OnBulkIssue(nullptr, &to.event) : 0;
    CopiedBytes stored;
    for (std::size_t i = 0; i < count; ++i) {
      const DecodedOperand& source = op.operands[1 + i];
      const std::byte* const value =
          warp.Lanes<std::byte>(source.slot) + static_cast<std::size_t>(lane) * width;
      if (reduces) {
        combine(to.access.at(lane), value, false);
      } else {
        std::memcpy(to.access.at(lane) + i * width, value, width);
      }
      const CopiedBytes one = BytesOf(warp, source, lane, width);
      if (one.AllDefined()) continue;
      stored.states.resize(bytes, 1);
      std::ranges::copy(one.states, stored.states.begin() + static_cast<std::ptrdiff_t>(i * width));
    }
    if (reduces) stored = Combined(stored, BytesTaken(warp, {}, to, lane, bytes));
    PutCopied(warp, op, put, to, lane, bytes, stored);
    warp.device->last_progress = warp.device->counters.steps;
    const std::uint64_t barrier = BulkAddress(warp, op.operands[op.operand_count - 1u], lane);
    if (!CompleteTransfer(warp, op, lane, barrier, bytes, {&token, 1})) return;
  }
}

/// operands: destination, source, size, and the mbarrier unless a bulk group counts.
void ReduceBulk(Warp& base, const Decoded& op) {
  CoreWarp& warp = Core(base);
  const Instruction& in = *op.source;
  const bool to_global = in.Has(Mod::kBulkGroup);
  const auto width = static_cast<std::uint32_t>(ptx::BitsOf(in.type()) / 8);
  const Combine combine = CombinerOf(in, in.type());
  const ChosenPlaces put = CheckCopyAddress(warp, op, op.operands[0], warp.exec);
  const ChosenPlaces taken = Either(CheckCopyAddress(warp, op, op.operands[1], warp.exec),
                                    CheckCopyNumber(warp, op, op.operands[2], warp.exec));
  const auto* const sizes = warp.Lanes<std::uint32_t>(op.operands[2].slot);
  for (LaneMask rest = warp.exec; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const std::uint32_t bytes = sizes[lane];
    if (bytes % 16 != 0) {
      return BulkMisuse(
          warp, op, lane,
          fmt::format("a bulk reduction of {} bytes: the size must be a multiple of 16", bytes));
    }
    if (bytes == 0) continue;
    Side from, to;
    if (!ResolveSide(warp, op, Space::kShared, BulkAddress(warp, op.operands[1], lane), lane, bytes,
                     false, from))
      return;
    if (!ResolveSide(warp, op, to_global ? Space::kGlobal : Space::kSharedCluster,
                     BulkAddress(warp, op.operands[0], lane), lane, bytes, true, to))
      return;
    AsReduction(to, width);
    const std::uint64_t token =
        warp.device->race ? warp.device->race->OnBulkIssue(&from.event, &to.event) : 0;
    for (std::uint32_t at = 0; at < bytes; at += width)
      combine(to.access.at(lane) + at, from.access.at(lane) + at, to_global);
    PutCopied(warp, op, put, to, lane, bytes,
              Combined(BytesTaken(warp, taken, from, lane, bytes),
                       BytesTaken(warp, {}, to, lane, bytes)));
    warp.device->last_progress = warp.device->counters.steps;
    warp.device->counters.atomics += bytes / width;
    if ((op.flags & kFlagOrderMatters) != 0) warp.device->counters.used_atomics = true;
    if (to_global) {
      warp.device->NoteMeeting();
      warp.device->counters.bytes_written += bytes;
      GroupsOf(warp).lanes[static_cast<std::size_t>(lane)].bulk_open.push_back(token);
    } else if (!CompleteTransfer(warp, op, lane, BulkAddress(warp, op.operands[3], lane), bytes,
                                 {&token, 1})) {
      return;
    }
  }
}

bool IsSlot(const Decoded& decoded, std::size_t index, int bits) {
  return index < decoded.operand_count &&
         decoded.operands[index].kind == DecodedOperand::Kind::kSlot &&
         decoded.operands[index].bits == bits;
}

Handler AsMemory(Decoded& decoded, Handler handler) {
  decoded.flags |= kFlagMemory;
  decoded.propagate = kPropagateSelf;
  return handler;
}

Handler ResolveStore(const Instruction& in, Decoded& decoded) {
  if (decoded.operand_count < 3 || decoded.operand_count > 6) return nullptr;
  const int bits = ptx::BitsOf(in.type());
  for (std::size_t i = 1; i + 1 < decoded.operand_count; ++i) {
    if (!IsSlot(decoded, i, bits)) return nullptr;
  }
  if (in.opcode == Opcode::kRedAsync &&
      (decoded.operand_count != 3 || CombinerOf(in, in.type()) == nullptr))
    return nullptr;
  return AsMemory(decoded, &StoreAsync);
}

Handler ResolveReduce(const Instruction& in, Decoded& decoded) {
  if (in.Has(Mod::kL2CacheHint)) --decoded.operand_count;
  const std::size_t operands = in.Has(Mod::kBulkGroup) ? 3 : 4;
  if (decoded.operand_count != operands || !IsSlot(decoded, 2, 32) ||
      CombinerOf(in, in.type()) == nullptr)
    return nullptr;
  using enum ptx::Type;
  const ptx::Type type = in.type();
  if (in.Has(Mod::kAdd) && (type == kF32 || type == kF64 || type == kF16 || type == kBF16))
    decoded.flags |= kFlagOrderMatters;
  return AsMemory(decoded, &ReduceBulk);
}

constexpr ResolverRow kRows[] = {
    {Opcode::kStAsync, &ResolveStore},
    {Opcode::kRedAsync, &ResolveStore},
    {Opcode::kCpReduceAsyncBulk, &ResolveReduce},
};

}  // namespace

std::span<const ResolverRow> AsyncStoreRows() { return kRows; }

}  // namespace assay::emu
