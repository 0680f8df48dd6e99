// Shadow values through memory: loads, stores, atomics, cp.async, and arguments of calls.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "validator/emu/memory.h"
#include "validator/emu/shadow/lanes.h"
#include "validator/emu/shadow/tracker.h"

namespace assay::emu {
namespace {

using ptx::Mod;

/// Local memory moves when it grows: its places are named by warp, lane and offset.
constexpr std::uint64_t kLocalTag = std::uint64_t{1} << 63;
constexpr int kLocalBits = 18;
static_assert(kMaxLocalBytes <= std::uint64_t{1} << kLocalBits);

std::uint64_t LocalKey(std::uint64_t launch, const CoreWarp& warp, std::uint64_t lane,
                       std::uint64_t offset) {
  return kLocalTag | (launch & 0x7f) << 55 | std::uint64_t{warp.number & 0xffffffffu} << 23 |
         lane << kLocalBits | offset / 2;
}

}  // namespace

std::uint64_t ShadowTracker::KeyOf(const CoreWarp& warp, const std::byte* at) const {
  const auto address = reinterpret_cast<std::uintptr_t>(at);
  const auto local = reinterpret_cast<std::uintptr_t>(warp.local.data());
  if (address < local || address - local >= warp.local.size())
    return address % 2 == 0 ? address / 2 : 0;
  const std::uint64_t lane = (address - local) / warp.local_stride;
  const std::uint64_t offset = (address - local) % warp.local_stride;
  return offset % 2 == 0 ? LocalKey(launch_, warp, lane, offset) : 0;
}

void ShadowTracker::CopyLocal(const CoreWarp& warp, int lane, std::uint64_t to, std::uint64_t from,
                              std::uint64_t bytes) {
  if (memory_.empty() || to % 2 != 0 || from % 2 != 0) return;
  const auto l = static_cast<std::uint64_t>(lane);
  for (std::uint64_t at = 0; at + 2 <= bytes; at += 2) {
    const Piece* const piece = memory_.Find(LocalKey(launch_, warp, l, from + at));
    memory_.Set(LocalKey(launch_, warp, l, to + at), piece == nullptr ? Piece{} : *piece);
  }
}

void ShadowTracker::RunLoad(CoreWarp& warp, const Decoded& op, const Plan&) {
  LaneAccess access;
  if (!memory_.empty()) Addresses(warp, op.operands[op.destinations], access);
  op.run(warp, op);
  const std::size_t bytes = static_cast<std::size_t>(ptx::BitsOf(op.source->type())) / 8;
  if (memory_.empty() || engine_.stopped || bytes < 2) {
    Forget(warp, op, warp.exec);
    return;
  }
  ForLanesIn(warp.exec, [&](int lane) {
    const std::byte* const start = HostAddress(warp, op.source->space, access.address[lane], lane,
                                               static_cast<std::uint32_t>(bytes * op.destinations));
    const std::uint64_t key = start == nullptr ? 0 : KeyOf(warp, start);
    for (std::size_t e = 0; e < op.destinations; ++e) {
      const Register d = RegisterOf(warp, op.operands[e]);
      if (d.data == nullptr) continue;
      Piece* const pieces = d.pieces_at(lane);
      if (*d.live != 0) std::fill_n(pieces, d.halves(), Piece{});
      if (key == 0) continue;
      for (std::size_t h = 0; h < std::min(bytes / 2, d.halves()); ++h) {
        const Piece* const piece = memory_.Find(key + e * bytes / 2 + h);
        if (piece == nullptr) continue;
        *d.live = 1;
        pieces[h] = *piece;
      }
    }
  });
}

void ShadowTracker::RunStore(CoreWarp& warp, const Decoded& op, const Plan& plan) {
  const std::size_t count = op.operand_count - std::size_t{1};
  const bool live = AnyLive(warp, op, 1, op.operand_count);
  op.run(warp, op);
  const std::size_t bytes = static_cast<std::size_t>(ptx::BitsOf(op.source->type())) / 8;
  if ((!live && memory_.empty()) || engine_.stopped || bytes < 2) return;
  LaneAccess access;
  Addresses(warp, op.operands[0], access);
  ForLanesIn(warp.exec, [&](int lane) {
    const std::byte* const start = HostAddress(warp, op.source->space, access.address[lane], lane,
                                               static_cast<std::uint32_t>(bytes * count));
    const std::uint64_t key = start == nullptr ? 0 : KeyOf(warp, start);
    if (key == 0) return;
    for (std::size_t e = 0; e < count; ++e) {
      const Register source = RegisterOf(warp, op.operands[1 + e]);
      if (source.data == nullptr) continue;
      Piece stored[8];
      const std::size_t halves = std::min(bytes / 2, source.halves());
      if (*source.live != 0) std::copy_n(source.pieces_at(lane), halves, stored);
      MarkSplit(stored, halves, plan.site);
      for (std::size_t h = 0; h < halves; ++h) memory_.Set(key + e * bytes / 2 + h, stored[h]);
    }
  });
}

void ShadowTracker::RunAtomic(CoreWarp& warp, const Decoded& op, const Plan& plan) {
  const LaneMask lanes = warp.exec;
  for (int i = 0; i < kWarpSize && !engine_.stopped; ++i) {
    const int lane = engine_.reverse_lanes ? kWarpSize - 1 - i : i;
    if ((lanes >> lane & 1) == 0) continue;
    warp.exec = LaneMask{1} << lane;
    RunAtomicLane(warp, op, plan, lane);
  }
  warp.exec = lanes;
}

void ShadowTracker::RunAtomicLane(CoreWarp& warp, const Decoded& op, const Plan& plan, int lane) {
  const std::size_t address_at = op.destinations;
  const std::size_t count = op.aux & 0xffff;  // Above: the order of memory.
  const std::size_t bytes = static_cast<std::size_t>(ptx::BitsOf(op.source->type())) / 8;
  LaneAccess access;
  Addresses(warp, op.operands[address_at], access);
  const std::byte* const start = HostAddress(warp, op.source->space, access.address[lane], lane,
                                             static_cast<std::uint32_t>(bytes * count));
  const std::uint64_t key = start == nullptr ? 0 : KeyOf(warp, start);
  if (key == 0 || bytes > 16) {
    op.run(warp, op);
    Forget(warp, op, warp.exec);
    return;
  }
  const ptx::Instruction& in = *op.source;
  const bool arithmetic = plan.from != NumberFormat::kNone &&
                          (in.Has(Mod::kAdd) || in.Has(Mod::kMin) || in.Has(Mod::kMax));
  const std::size_t size = BytesOf(plan.from);
  const std::size_t halves = bytes / 2;
  Piece old[8][8];
  Number numbers[8][2][2];
  std::byte before[8][16];
  for (std::size_t e = 0; e < count; ++e) {
    std::memcpy(before[e], start + e * bytes, bytes);
    for (std::size_t h = 0; h < halves; ++h) {
      if (const Piece* const piece = memory_.Find(key + e * halves + h)) old[e][h] = *piece;
    }
    if (!arithmetic) continue;
    const Register b = RegisterOf(warp, op.operands[address_at + 1 + e]);
    for (std::size_t p = 0; p < plan.packed; ++p) {
      numbers[e][p][0] = Read(plan.from, before[e] + p * size, old[e] + p * size / 2);
      numbers[e][p][1] = Read(plan.from, b.at(lane) + p * size,
                              *b.live != 0 ? b.pieces_at(lane) + p * size / 2 : nullptr);
    }
  }
  // What is stored may come from registers that receive the old value.
  Piece stored[8][8];
  const bool compares = in.Has(Mod::kCas);
  bool swaps = in.Has(Mod::kExch);
  if (compares) {
    const Register expected = RegisterOf(warp, op.operands[address_at + 1]);
    swaps = expected.data != nullptr && std::memcmp(expected.at(lane), before[0], bytes) == 0;
  }
  if (swaps) {
    for (std::size_t e = 0; e < count; ++e) {
      const Register b = RegisterOf(warp, op.operands[address_at + 1 + e + (compares ? 1 : 0)]);
      if (b.data != nullptr && *b.live != 0)
        std::copy_n(b.pieces_at(lane), std::min(halves, b.halves()), stored[e]);
    }
  }
  op.run(warp, op);
  if (engine_.stopped) return;
  for (std::size_t e = 0; e < count; ++e) {
    const std::byte* const at = start + e * bytes;
    if (arithmetic) {
      for (std::size_t p = 0; p < plan.packed; ++p) {
        const Number* const x = numbers[e][p];
        const auto evaluate = [&](double a, double b) {
          const Operands operands{a, b, 0};
          return in.Has(Mod::kAdd) ? Formula{a + b, {1, 1}}
                                   : Extreme(operands, 2, in.Has(Mod::kMax));
        };
        const double result = ToDouble(plan.to, BitsAt(at + p * size, size));
        const ValueId id = Result(plan, evaluate(x[0].actual, x[1].actual),
                                  evaluate(x[0].shadow, x[1].shadow).value, x, 2, result);
        WriteMemory(id, plan.to, key + e * halves + p * size / 2, at + p * size);
      }
    } else if (swaps) {
      for (std::size_t h = 0; h < halves; ++h) memory_.Set(key + e * halves + h, stored[e][h]);
    }
    if (e >= op.destinations) continue;
    const Register d = RegisterOf(warp, op.operands[e]);
    if (d.data == nullptr) continue;
    const bool any = std::any_of(old[e], old[e] + halves,
                                 [](const Piece& piece) { return piece.value != kExact; });
    if (!any && *d.live == 0) continue;
    *d.live = 1;
    std::fill_n(d.pieces_at(lane), d.halves(), Piece{});
    std::copy_n(old[e], std::min(halves, d.halves()), d.pieces_at(lane));
  }
}

void ShadowTracker::RunAsyncCopy(CoreWarp& warp, const Decoded& op, const Plan&) {
  const auto bytes = static_cast<std::uint32_t>(op.immediate);
  LaneAccess to, from;
  if (!memory_.empty()) {
    Addresses(warp, op.operands[0], to);
    Addresses(warp, op.operands[1], from);
  }
  op.run(warp, op);
  if (memory_.empty() || engine_.stopped) return;
  ForLanesIn(warp.exec, [&](int lane) {
    const std::byte* const source =
        HostAddress(warp, ptx::Space::kGlobal, from.address[lane], lane, bytes);
    const std::byte* const target =
        HostAddress(warp, ptx::Space::kShared, to.address[lane], lane, bytes);
    if (source == nullptr || target == nullptr) return;
    const std::uint64_t from_key = KeyOf(warp, source);
    const std::uint64_t to_key = KeyOf(warp, target);
    if (from_key == 0 || to_key == 0) return;
    // The bytes arrive later; until then the pieces do not fit what is there, and mean nothing.
    for (std::uint32_t h = 0; h < bytes / 2; ++h) {
      const Piece* const piece = memory_.Find(from_key + h);
      memory_.Set(to_key + h, piece == nullptr ? Piece{} : *piece);
    }
  });
}

}  // namespace assay::emu
