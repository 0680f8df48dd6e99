// How the undefined bits of an instruction's sources reach its destinations (undefined.h).
#include "validator/emu/watch/propagation.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>

#include "validator/emu/handlers/async_copy.h"
#include "validator/emu/site.h"
#include "validator/emu/watch/machine.h"
#include "validator/emu/watch/undefined.h"

namespace assay::emu {
namespace {

using ptx::Definedness;
using ptx::Mod;
using ptx::Operation;

__extension__ typedef unsigned __int128 Exact;

/// A slot's lanes, as the widest type.
std::uint64_t ReadLane(CoreWarp& warp, const DecodedOperand& operand, int lane) {
  if (operand.bits == 64) return warp.Lanes<std::uint64_t>(operand.slot)[lane];
  if (operand.bits == 32) return warp.Lanes<std::uint32_t>(operand.slot)[lane];
  return warp.Lanes<std::uint16_t>(operand.slot)[lane];
}

/// One instruction, its undefined sources looked up.
class Propagation {
 public:
  Propagation(CoreWarp& warp, const Decoded& op)
      : warp_(warp),
        op_(op),
        frame_(*warp.frame),
        sources_(op.operands + op.destinations,
                 static_cast<std::size_t>(op.operand_count - op.destinations)) {
    for (const DecodedOperand& source : sources_) {
      if (!IsRegister(source)) continue;
      const LaneMask mask = frame_.undefined[source.shadow];
      const LaneMask unset = UnsetLanes(frame_, source.shadow);
      // The origin of what is not initialised goes first: it is the worse of the two.
      if ((mask & warp.exec) != 0 &&
          (origin_ == kNoPc || ((unset & warp.exec) != 0 && (unset_ & warp.exec) == 0)))
        origin_ = frame_.origin[source.shadow];
      any_ |= mask;
      unset_ |= unset;
    }
  }

  void Run() {
    Spread();
    // Where nothing that is not initialised took part, the result is the machine's choice.
    const bool by_lane = op_.rules.definedness != Definedness::kMatrix;
    const LaneMask chosen = by_lane ? ~unset_ : unset_ == 0 ? kAllLanes : 0;
    for (std::size_t i = 0; i < op_.destinations; ++i) {
      const DecodedOperand& target = op_.operands[i];
      if (IsRegister(target))
        frame_.machine[target.shadow] |= chosen & warp_.exec & frame_.undefined[target.shadow];
    }
  }

 private:
  void Spread() {
    if (warp_.async != nullptr && op_.rules.operation != Operation::kCopy) ReportInFlight();
    switch (op_.rules.definedness) {
      case Definedness::kMoved:
        return Moved(sources_.size());
      case Definedness::kMovedOne:
        return Moved(1);
      case Definedness::kMovedTwo:
        return Moved(2);
      case Definedness::kBitwise:
        return op_.operands[0].kind == DecodedOperand::Kind::kPredicate ? Predicates() : Bitwise();
      case Definedness::kUpward:
        return Upward();
      case Definedness::kByHalves:
        return ByHalves();
      case Definedness::kPaired:
        return Paired();
      case Definedness::kCompared:
        return Compared();
      case Definedness::kMatrix:
        return PropagateMatrix(warp_, op_, origin_);
      case Definedness::kDecided:
        return Decided();
      case Definedness::kWhole:
      case Definedness::kConverted:
        return Whole(any_);
    }
  }

  std::uint64_t BitsOf(const DecodedOperand& source, int lane) const {
    return IsRegister(source) ? UndefinedBits(frame_, source, lane) : 0;
  }

  /// Accumulators of a wgmma that was not waited for may be moved about, nothing else.
  void ReportInFlight() {
    for (const DecodedOperand& source : sources_) {
      if (!IsRegister(source)) continue;
      const LaneMask lanes = frame_.undefined[source.shadow] & warp_.exec;
      if (lanes == 0 || !IsInFlight(warp_, frame_.origin[source.shadow])) continue;
      return ReportUndefined(
          warp_, warp_.PcOf(op_), lanes,
          fmt::format("the accumulators of the wgmma at {} are used before wgmma.wait_group",
                      LineOf(*warp_.device, frame_.origin[source.shadow])),
          "uses an accumulator", frame_.origin[source.shadow]);
    }
  }

  /// Every destination, as a whole.
  void Whole(LaneMask undefined) {
    for (std::size_t i = 0; i < op_.destinations; ++i) {
      if (IsRegister(op_.operands[i]))
        SetUndefined(frame_, op_.operands[i].shadow, warp_.exec, undefined, origin_);
    }
  }

  /// What the instruction gives with `words` (by source; null: as it is) in place of its sources.
  /// Registers are as before afterwards.
  struct Substitute {
    const DecodedOperand* source;
    LaneBitsets words;
  };
  void Evaluate(std::span<const Substitute* const> words, std::span<LaneBitsets> results) {
    struct Saved {
      Slot slot;
      std::array<std::byte, 2 * kSlotBytes> bytes;
    };
    std::array<Saved, 12> saved;
    std::size_t count = 0;
    const auto save = [&](const DecodedOperand& operand) {
      if (operand.kind != DecodedOperand::Kind::kSlot) return;
      Saved& entry = saved[count++];
      entry.slot = operand.slot;
      std::memcpy(entry.bytes.data(), warp_.Lanes<std::byte>(operand.slot), Bytes(operand));
    };
    for (std::size_t i = 0; i < op_.destinations; ++i) save(op_.operands[i]);
    for (const Substitute* const word : words) save(*word->source);
    for (const Substitute* const word : words) WriteLanes(*word->source, word->words);
    op_.run(warp_, op_);
    for (std::size_t i = 0; i < op_.destinations && i < results.size(); ++i) {
      if (op_.operands[i].kind == DecodedOperand::Kind::kSlot)
        ReadLanes(op_.operands[i], results[i]);
    }
    // Registers that stand there twice were saved before anything was written.
    std::size_t at = 0;
    const auto restore = [&](const DecodedOperand& operand) {
      if (operand.kind != DecodedOperand::Kind::kSlot) return;
      const Saved& entry = saved[at++];
      std::memcpy(warp_.Lanes<std::byte>(entry.slot), entry.bytes.data(), Bytes(operand));
    };
    for (std::size_t i = 0; i < op_.destinations; ++i) restore(op_.operands[i]);
    for (const Substitute* const word : words) restore(*word->source);
  }
  void ReadLanes(const DecodedOperand& operand, LaneBitsets& words) {
    const auto read = [&]<class Word>(const Word* lanes) {
      std::copy_n(lanes, kWarpSize, words.begin());
    };
    if (operand.bits == 64) return read(warp_.Lanes<std::uint64_t>(operand.slot));
    if (operand.bits == 32) return read(warp_.Lanes<std::uint32_t>(operand.slot));
    read(warp_.Lanes<std::uint16_t>(operand.slot));
  }
  void WriteLanes(const DecodedOperand& operand, const LaneBitsets& words) {
    const auto write = [&]<class Word>(Word* lanes) {
      std::ranges::transform(words, lanes,
                             [](std::uint64_t word) { return static_cast<Word>(word); });
    };
    if (operand.bits == 64) return write(warp_.Lanes<std::uint64_t>(operand.slot));
    if (operand.bits == 32) return write(warp_.Lanes<std::uint32_t>(operand.slot));
    write(warp_.Lanes<std::uint16_t>(operand.slot));
  }
  static std::size_t Bytes(const DecodedOperand& operand) {
    return operand.bits == 64 ? 2 * kSlotBytes : kSlotBytes;
  }

  /// The first `carriers` sources carry the bits; the others say how they move.
  void Moved(std::size_t carriers) {
    if (op_.operands[0].kind == DecodedOperand::Kind::kPredicate) return Whole(any_);
    LaneMask unclear = 0;  // Lanes in which it is undefined how bits move.
    std::array<Substitute, kMostOperands> words;
    std::array<const Substitute*, kMostOperands> carried;
    std::size_t count = 0;
    if (sources_.size() > kMostOperands || op_.destinations > kMostOperands) return Whole(any_);
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      const DecodedOperand& source = sources_[i];
      if (!IsRegister(source)) continue;
      if (i >= carriers) {
        unclear |= frame_.undefined[source.shadow];
        continue;
      }
      // One register as value and as count: which of the two a bit is cannot be told apart.
      for (std::size_t j = carriers; j < sources_.size(); ++j) {
        if (IsRegister(sources_[j]) && sources_[j].slot == source.slot &&
            sources_[j].kind == source.kind)
          return Whole(any_);
      }
      Substitute& word = words[count];
      carried[count++] = &word;
      word.source = &source;
      for (int lane = 0; lane < kWarpSize; ++lane)
        word.words[static_cast<std::size_t>(lane)] = BitsOf(source, lane);
    }
    std::array<LaneBitsets, kMostOperands> results;
    Evaluate({carried.data(), count}, results);
    for (std::size_t i = 0; i < op_.destinations; ++i) {
      if (op_.operands[i].kind != DecodedOperand::Kind::kSlot) continue;
      ForEachLane(unclear, [&](int lane) {
        results[i][static_cast<std::size_t>(lane)] = ~std::uint64_t{0};
      });
      SetUndefinedBits(frame_, op_.operands[i], warp_.exec, results[i], origin_);
    }
  }

  /// With up to three sources, each of whose undefined bits may be all zero or all one: bits that
  /// come out the same every time are defined.
  void Bitwise() {
    const std::size_t sources = std::min<std::size_t>(sources_.size(), 3);
    std::array<const DecodedOperand*, 3> open;
    std::size_t count = 0;
    for (std::size_t i = 0; i < sources; ++i) {
      if (sources_[i].kind != DecodedOperand::Kind::kSlot) return Whole(any_);
      if (frame_.undefined[sources_[i].shadow] != 0) open[count++] = &sources_[i];
    }
    LaneBitsets all;
    all.fill(~std::uint64_t{0});
    LaneBitsets some{};
    std::array<Substitute, 3> zeros, ones;
    for (std::size_t i = 0; i < count; ++i) {
      LaneBitsets values;
      ReadLanes(*open[i], values);
      zeros[i].source = ones[i].source = open[i];
      for (int lane = 0; lane < kWarpSize; ++lane) {
        const auto at = static_cast<std::size_t>(lane);
        const std::uint64_t bits = BitsOf(*open[i], lane);
        zeros[i].words[at] = values[at] & ~bits;
        ones[i].words[at] = values[at] | bits;
      }
    }
    for (unsigned choice = 0; choice < 1u << count; ++choice) {
      std::array<const Substitute*, 3> words;
      for (std::size_t i = 0; i < count; ++i)
        words[i] = (choice >> i & 1) != 0 ? &ones[i] : &zeros[i];
      std::array<LaneBitsets, 1> result;
      Evaluate({words.data(), count}, result);
      for (std::size_t lane = 0; lane < kWarpSize; ++lane) {
        all[lane] &= result[0][lane];
        some[lane] |= result[0][lane];
      }
    }
    for (std::size_t lane = 0; lane < kWarpSize; ++lane) some[lane] ^= all[lane];
    SetUndefinedBits(frame_, op_.operands[0], warp_.exec, some, origin_);
  }

  void Predicates() {
    LaneMask undefined = any_;
    for (const DecodedOperand& source : sources_) {
      if (source.kind != DecodedOperand::Kind::kPredicate) return Whole(any_);
      const LaneMask value =
          source.negated ? ~warp_.predicates[source.slot] : warp_.predicates[source.slot];
      // A defined source that decides alone.
      LaneMask decides = 0;
      if (op_.rules.operation == Operation::kAnd) decides = ~value;
      if (op_.rules.operation == Operation::kOr) decides = value;
      undefined &= ~(decides & ~frame_.undefined[source.shadow]);
    }
    Whole(undefined);
  }

  template <class Compute>
  void ByLane(Compute compute) {
    LaneBitsets bits{};
    ForEachLane(warp_.exec & any_,
                [&](int lane) { bits[static_cast<std::size_t>(lane)] = compute(lane); });
    for (std::size_t i = 0; i < op_.destinations; ++i) {
      if (op_.operands[i].kind == DecodedOperand::Kind::kSlot)
        SetUndefinedBits(frame_, op_.operands[i], warp_.exec, bits, origin_);
    }
  }
  std::uint64_t Together(int lane) const {
    std::uint64_t bits = 0;
    for (const DecodedOperand& source : sources_) bits |= BitsOf(source, lane);
    return bits;
  }
  static std::uint64_t InHalves(std::uint64_t bits) {
    std::uint64_t halves = 0;
    for (int at = 0; at < 64; at += 16) {
      const std::uint64_t half = std::uint64_t{0xffff} << at;
      if ((bits & half) != 0) halves |= half;
    }
    return halves;
  }

  void Upward() {
    ByLane([&](int lane) {
      const std::uint64_t bits = Together(lane);
      const std::uint64_t open = (bits | (0 - bits)) & ReachOf(lane);
      // An offset that the machine chose, however large, leaves nothing of an address known, or the
      // sum would look like one that was moved about.
      return open >> 63 != 0 && MovesAddress(lane) ? ~std::uint64_t{0} : open;
    });
  }
  /// The bits of a sum, difference or product that undefined bits of its sources can reach: those
  /// below the common front of the least and the greatest result.
  std::uint64_t ReachOf(int lane) const {
    constexpr std::uint64_t kAll = ~std::uint64_t{0};
    const int bits = op_.operands[0].bits;
    if (op_.operands[0].kind != DecodedOperand::Kind::kSlot || sources_.size() < 2) return kAll;
    Exact least[3] = {};
    Exact greatest[3] = {};
    for (std::size_t i = 0; i < std::min<std::size_t>(sources_.size(), 3); ++i) {
      if (sources_[i].kind != DecodedOperand::Kind::kSlot || sources_[i].bits > 64) return kAll;
      const std::uint64_t open = BitsOf(sources_[i], lane);
      const std::uint64_t value = ReadLane(warp_, sources_[i], lane);
      least[i] = value & ~open;
      greatest[i] = (value | open) & OnesOf(sources_[i].bits);
    }
    switch (op_.rules.operation) {
      case Operation::kSum:
        least[0] += least[1];
        greatest[0] += greatest[1];
        break;
      case Operation::kDifference: {  // a - b is a + ~b + 1.
        const Exact ones = OnesOf(bits);
        least[0] += (ones - greatest[1]) + 1;
        greatest[0] += (ones - least[1]) + 1;
        break;
      }
      case Operation::kProduct:
      case Operation::kMultiplyAdd: {
        // Of a wide product of signed numbers: those that are not negative.
        const int positive = op_.source->Has(Mod::kWide) ? sources_[0].bits - 1 : 32;
        if (greatest[0] >> positive != 0 || greatest[1] >> positive != 0) return kAll;
        least[0] *= least[1];
        greatest[0] *= greatest[1];
        if (op_.rules.operation == Operation::kProduct) break;
        least[0] += least[2];
        greatest[0] += greatest[2];
        break;
      }
      default:
        return kAll;
    }
    const Exact apart = least[0] ^ greatest[0];
    if (apart >> bits != 0) return kAll;
    return OnesOf(static_cast<int>(std::bit_width(static_cast<std::uint64_t>(apart))));
  }
  bool MovesAddress(int lane) const {
    if (op_.operands[0].bits != 64 || (unset_ >> lane & 1) != 0) return false;
    bool address = false;
    bool offset = false;
    for (const DecodedOperand& source : sources_) {
      if (source.kind != DecodedOperand::Kind::kSlot) continue;
      const bool open = BitsOf(source, lane) != 0;
      const bool points = source.bits == 64 && IsGenericAddress(ReadLane(warp_, source, lane));
      address = address || (points && !open);
      offset = offset || (open && !points);
    }
    return address && offset;
  }
  void ByHalves() {
    ByLane([&](int lane) { return InHalves(Together(lane)); });
  }
  /// cvt d, a, b: a becomes the upper half, b the lower one.
  void Paired() {
    ByLane([&](int lane) {
      return (BitsOf(sources_[0], lane) != 0 ? std::uint64_t{0xffff0000} : 0) |
             (BitsOf(sources_[1], lane) != 0 ? std::uint64_t{0xffff} : 0);
    });
  }
  /// Whether two values are equal: not, where bits differ that are no choice of the machine's. (What
  /// is not initialised is a defect wherever it is compared.) An address is never null.
  void Decided() {
    LaneMask undefined = any_;
    for (LaneMask rest = any_ & ~unset_ & warp_.exec; rest != 0; rest &= rest - 1) {
      const int lane = std::countr_zero(rest);
      const std::uint64_t a = ReadLane(warp_, sources_[0], lane);
      const std::uint64_t b = ReadLane(warp_, sources_[1], lane);
      const std::uint64_t open = Together(lane);
      const bool null = (a == 0 && BitsOf(sources_[0], lane) == 0 && IsGenericAddress(b)) ||
                        (b == 0 && BitsOf(sources_[1], lane) == 0 && IsGenericAddress(a));
      if (null || ((a ^ b) & ~open & OnesOf(sources_[0].bits)) != 0)
        undefined &= ~(LaneMask{1} << lane);
    }
    Whole(undefined);
  }
  bool IsGenericAddress(std::uint64_t value) const {
    const std::uint64_t window = value & kWindowMask;
    return window == kSharedWindow || window == kLocalWindow || window == kCodeWindow ||
           GenericRegion(*warp_.device, value) != nullptr;
  }

  /// setp p|q on pairs: p is about the lower halves, q about the upper ones.
  void Compared() {
    LaneMask half[2] = {0, 0};
    ForEachLane(warp_.exec & any_, [&](int lane) {
      const std::uint64_t bits = Together(lane);
      for (int h = 0; h < 2; ++h) {
        if ((bits >> (16 * h) & 0xffff) != 0) half[h] |= LaneMask{1} << lane;
      }
    });
    for (std::size_t i = 0; i < 2; ++i) {
      if (IsRegister(op_.operands[i]))
        SetUndefined(frame_, op_.operands[i].shadow, warp_.exec, half[i], origin_);
    }
  }

  static constexpr std::size_t kMostOperands = 4;

  CoreWarp& warp_;
  const Decoded& op_;
  Frame& frame_;
  std::span<const DecodedOperand> sources_;
  LaneMask any_ = 0;    // Lanes with an undefined source, whether they execute or not.
  LaneMask unset_ = 0;  // Of them, those with a source that is not initialised.
  std::uint32_t origin_ = kNoPc;
};

}  // namespace

void PropagateUndefined(CoreWarp& warp, const Decoded& op) { Propagation(warp, op).Run(); }

void Propagate(CoreWarp& warp, const Decoded& op) {
  LaneMask undefined = 0;
  for (std::size_t i = op.destinations; i < op.operand_count; ++i) {
    if (IsRegister(op.operands[i])) undefined |= warp.frame->undefined[op.operands[i].shadow];
  }
  if ((undefined & warp.exec) != 0) return PropagateUndefined(warp, op);
  for (std::size_t i = 0; i < op.destinations; ++i) {
    if (IsRegister(op.operands[i])) warp.frame->undefined[op.operands[i].shadow] &= ~warp.exec;
  }
}

}  // namespace assay::emu
