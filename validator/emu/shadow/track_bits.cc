// Shadow values through moves, selections, shuffles, and through integer instructions that people
// use on the bits of floats.
//
// A 16-bit half of a result whose bits are those of a half of a source is that half, moved. Where the
// whole is a number again that has to do with an f32 source, it stays one: its negation or magnitude,
// the source times a power of two (exponents are added and removed), or a neighbour of it (a mask or
// an addition that rounds; the instruction is charged with the difference).
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "validator/emu/shadow/lanes.h"
#include "validator/emu/shadow/tracker.h"

namespace assay::emu {
namespace {

using ptx::Mod;
using ptx::Operation;

constexpr std::size_t kMostHalves = 16;
/// A result this close to a source, relatively, is the source, rounded.
constexpr double kNear = 0x1p-6;

/// The halves of a lane's sources, in order.
struct Halves {
  std::array<Piece, kMostHalves> pieces{};  ///< kExact where the bits are no number's.
  std::array<std::uint16_t, kMostHalves> bits{};
  std::size_t count = 0;
  bool any = false;
};

/// By how many halves bits move upwards, for shifts by constants and multiples of 16.
int MovesUp(const Decoded& op, const Halves& sources, std::size_t value_halves) {
  const Operation operation = op.rules.operation;
  if (operation != Operation::kShiftLeft && operation != Operation::kShiftRight) return 0;
  if (sources.count <= value_halves || sources.bits[value_halves] % 16 != 0) return 0;
  const int halves = sources.bits[value_halves] / 16;
  return operation == Operation::kShiftLeft ? halves : -halves;
}

}  // namespace

void ShadowTracker::MarkSplit(Piece* pieces, std::size_t count, SiteId site) const {
  for (std::size_t h = 0; h < count; ++h) {
    Piece& piece = pieces[h];
    if (piece.value == kExact) continue;
    const std::size_t parts = BytesOf(ledger_.At(piece.value).format) / 2;
    // Whole when all parts of the value lie around this one.
    bool whole = h >= piece.part && h - piece.part + parts <= count;
    for (std::size_t p = 0; whole && p < parts; ++p) {
      const Piece& other = pieces[h - piece.part + p];
      whole = other.value == piece.value && other.part == p;
    }
    if (!whole) piece.split = site;
  }
}

void ShadowTracker::NameFloats(CoreWarp& warp, const Decoded& op, const Plan& plan) {
  for (std::size_t i = op.destinations; i < op.operand_count && i < 32; ++i) {
    if ((plan.float_sources >> i & 1) == 0) continue;
    const Register source = RegisterOf(warp, op.operands[i]);
    ForLanesIn(warp.exec, [&](int lane) {
      Piece* const pieces = source.pieces_at(lane);
      const std::byte* const at = source.at(lane);
      const auto current = [&](std::size_t h) {
        return pieces[h].value != kExact && pieces[h].bits == HalfAt(at + 2 * h);
      };
      if (*source.live != 0 && (current(0) || current(1))) return;
      std::uint32_t bits;
      std::memcpy(&bits, at, 4);
      const double actual = ToDouble(NumberFormat::kF32, bits);
      if (!std::isfinite(actual) || actual == 0) return;
      *source.live = 1;
      Write(ledger_.Exact(actual, NumberFormat::kF32), NumberFormat::kF32, at, pieces);
    });
  }
}

void ShadowTracker::RunMove(CoreWarp& warp, const Decoded& op, const Plan& plan) {
  if (plan.float_sources != 0) NameFloats(warp, op, plan);
  if (!AnyLive(warp, op, op.destinations, op.operand_count)) {
    op.run(warp, op);
    Forget(warp, op, warp.exec);
    return;
  }
  const auto halves_of = [&](std::size_t first, std::size_t end) {
    std::size_t halves = 0;
    for (std::size_t i = first; i < end; ++i) {
      const DecodedOperand& operand = op.operands[i];
      // A sink is as wide as its siblings.
      const int bits =
          operand.kind == DecodedOperand::Kind::kSlot ? operand.bits : op.operands[0].bits;
      halves += static_cast<std::size_t>(bits) / 16;
    }
    return halves;
  };
  const std::size_t count = halves_of(op.destinations, op.operand_count);
  const bool sinks = std::any_of(op.operands, op.operands + op.destinations, [](const auto& d) {
    return d.kind != DecodedOperand::Kind::kSlot;
  });
  if (sinks || count > kMostHalves || count != halves_of(0, op.destinations)) {
    RunBits(warp, op, plan);
    return;
  }
  const LaneMask lanes = warp.exec;
  std::array<std::array<Piece, kMostHalves>, kWarpSize> moved;
  std::size_t at = 0;
  for (std::size_t i = op.destinations; i < op.operand_count; ++i) {
    const Register source = RegisterOf(warp, op.operands[i]);
    ForLanesIn(lanes, [&](int lane) {
      std::copy_n(source.pieces_at(lane), source.halves(),
                  moved[static_cast<std::size_t>(lane)].begin() + static_cast<std::ptrdiff_t>(at));
    });
    at += source.halves();
  }
  op.run(warp, op);
  at = 0;
  for (std::size_t i = 0; i < op.destinations; ++i) {
    const Register d = RegisterOf(warp, op.operands[i]);
    *d.live = 1;
    ForLanesIn(lanes, [&](int lane) {
      Piece* const pieces = d.pieces_at(lane);
      std::copy_n(moved[static_cast<std::size_t>(lane)].begin() + static_cast<std::ptrdiff_t>(at),
                  d.halves(), pieces);
      MarkSplit(pieces, d.halves(), plan.site);
    });
    at += d.halves();
  }
}

void ShadowTracker::RunSelect(CoreWarp& warp, const Decoded& op, const Plan&) {
  if (op.operand_count != 4 || !AnyLive(warp, op, 1, 3) ||
      op.operands[3].kind != DecodedOperand::Kind::kPredicate) {
    op.run(warp, op);
    Forget(warp, op, warp.exec);
    return;
  }
  LaneMask first = warp.predicates[op.operands[3].slot];
  if (op.operands[3].negated) first = ~first;
  const Register a = RegisterOf(warp, op.operands[1]);
  const Register b = RegisterOf(warp, op.operands[2]);
  const Register d = RegisterOf(warp, op.operands[0]);
  op.run(warp, op);
  if (d.data == nullptr || a.data == nullptr || b.data == nullptr) return;
  *d.live = 1;
  ForLanesIn(warp.exec, [&](int lane) {
    const Register& chosen = (first >> lane & 1) != 0 ? a : b;
    std::copy_n(chosen.pieces_at(lane), std::min(d.halves(), chosen.halves()), d.pieces_at(lane));
  });
}

ValueId ShadowTracker::FromFloatBits(const Plan& plan, const Number& from, std::uint32_t bits,
                                     std::uint32_t result) {
  const double actual = ToDouble(NumberFormat::kF32, result);
  if (!std::isfinite(actual) || !std::isfinite(from.actual)) return kExact;
  constexpr std::uint32_t kSign = 0x80000000u, kExponent = 0x7f800000u;
  const bool scaled = ((bits ^ result) & ~(kSign | kExponent)) == 0 && (bits & kExponent) != 0 &&
                      (result & kExponent) != 0;
  if (scaled || (result & ~kSign) == (bits & ~kSign)) {
    const double factor = from.actual == 0 ? 1 : actual / from.actual;
    ledger_.Begin();
    ledger_.AddScaled(from.id, factor);
    return ledger_.End(actual, from.shadow * factor, NumberFormat::kF32);
  }
  if (std::fabs(actual - from.actual) > kNear * std::fabs(from.actual)) return kExact;
  ledger_.Begin();
  ledger_.AddScaled(from.id, 1);
  Charge(plan, actual - from.actual);
  return ledger_.End(actual, from.shadow, NumberFormat::kF32);
}

void ShadowTracker::RunBits(CoreWarp& warp, const Decoded& op, const Plan& plan) {
  if (plan.float_sources != 0) NameFloats(warp, op, plan);
  if (!AnyLive(warp, op, op.destinations, op.operand_count)) {
    op.run(warp, op);
    Forget(warp, op, warp.exec);
    return;
  }
  const LaneMask lanes = warp.exec;
  std::array<Halves, kWarpSize> before;
  std::array<Number, kWarpSize> floats{};
  std::array<std::uint32_t, kWarpSize> float_bits{};
  std::size_t value_halves = 0;
  for (std::size_t i = op.destinations; i < op.operand_count; ++i) {
    const Register source = RegisterOf(warp, op.operands[i]);
    if (source.data == nullptr) continue;
    if (value_halves == 0) value_halves = source.halves();
    ForLanesIn(lanes, [&](int lane) {
      const auto l = static_cast<std::size_t>(lane);
      Halves& into = before[l];
      for (std::size_t h = 0; h < source.halves() && into.count < kMostHalves; ++h) {
        const std::uint16_t bits = HalfAt(source.at(lane) + 2 * h);
        const Piece& piece = source.pieces_at(lane)[h];
        into.bits[into.count] = bits;
        if (*source.live != 0 && piece.value != kExact && piece.bits == bits) {
          into.pieces[into.count] = piece;
          into.any = true;
        }
        ++into.count;
      }
      if (source.stride == 4 && *source.live != 0 && floats[l].id == kExact && before[l].any) {
        const Piece& low = source.pieces_at(lane)[0];
        const Piece& high = source.pieces_at(lane)[1];
        if (low.value == high.value && low.value != kExact &&
            ledger_.At(low.value).format == NumberFormat::kF32) {
          floats[l] = Read(NumberFormat::kF32, source.at(lane), source.pieces_at(lane));
          std::memcpy(&float_bits[l], source.at(lane), 4);
        }
      }
    });
  }
  op.run(warp, op);
  for (std::size_t i = 0; i < op.destinations; ++i) {
    const Register d = RegisterOf(warp, op.operands[i]);
    if (d.data == nullptr) continue;
    *d.live = 1;
    ForLanesIn(lanes, [&](int lane) {
      const auto l = static_cast<std::size_t>(lane);
      const Halves& sources = before[l];
      Piece* const pieces = d.pieces_at(lane);
      std::fill_n(pieces, d.halves(), Piece{});
      if (!sources.any) return;
      if (d.stride == 4 && floats[l].id != kExact) {
        std::uint32_t result;
        std::memcpy(&result, d.at(lane), 4);
        if (const ValueId id = FromFloatBits(plan, floats[l], float_bits[l], result);
            id != kExact) {
          Write(id, NumberFormat::kF32, d.at(lane), pieces);
          return;
        }
      }
      const int up = MovesUp(op, sources, value_halves);
      for (std::size_t h = 0; h < d.halves(); ++h) {
        const std::uint16_t bits = HalfAt(d.at(lane) + 2 * h);
        const auto expected = static_cast<std::size_t>(static_cast<int>(h) - up);
        std::size_t found = kMostHalves;
        for (std::size_t s = 0; s < sources.count; ++s) {
          if (sources.pieces[s].value == kExact || sources.bits[s] != bits) continue;
          if (found == kMostHalves || s == expected) found = s;
        }
        if (found != kMostHalves) {
          pieces[h] = sources.pieces[found];
          continue;
        }
        // Packed halves: a sign that was flipped, set or cleared.
        if (h >= sources.count || sources.pieces[h].value == kExact) continue;
        const ShadowValue value = ledger_.At(sources.pieces[h].value);
        if ((bits ^ sources.bits[h]) != 0x8000 || BytesOf(value.format) != 2) continue;
        ledger_.Begin();
        ledger_.AddScaled(sources.pieces[h].value, -1);
        const ValueId id = ledger_.End(-value.actual, -value.shadow, value.format);
        Write(id, value.format, d.at(lane) + 2 * h, pieces + h);
      }
      MarkSplit(pieces, d.halves(), plan.site);
    });
  }
}

void ShadowTracker::RunShuffle(CoreWarp& warp, const Decoded& op, const Plan&) {
  const std::size_t first = op.destinations;
  const Register a = RegisterOf(warp, op.operands[first]);
  if (a.live == nullptr || *a.live == 0 || a.stride != 4 || warp.exec == 0) {
    op.run(warp, op);
    Forget(warp, op, warp.exec);
    return;
  }
  // Where each lane reads follows from what it got: every lane's bits and pieces before.
  std::array<std::uint32_t, kWarpSize> bits{}, deltas{}, clamps{};
  std::array<std::array<Piece, 2>, kWarpSize> pieces{};
  const auto* const b = warp.Lanes<std::uint32_t>(op.operands[first + 1].slot);
  const auto* const c = warp.Lanes<std::uint32_t>(op.operands[first + 2].slot);
  for (std::size_t lane = 0; lane < kWarpSize; ++lane) {
    std::memcpy(&bits[lane], a.at(static_cast<int>(lane)), 4);
    std::copy_n(a.pieces_at(static_cast<int>(lane)), 2, pieces[lane].begin());
    deltas[lane] = b[lane] & 31;
    clamps[lane] = c[lane];
  }
  op.run(warp, op);
  const Register d = RegisterOf(warp, op.operands[0]);
  if (d.data == nullptr || d.stride != 4 || warp.exec == 0) return;
  *d.live = 1;
  const ptx::Instruction& in = *op.source;
  ForLanesIn(warp.exec, [&](int lane) {
    const auto l = static_cast<std::uint32_t>(lane);
    const std::uint32_t segment = clamps[l] >> 8 & 31;
    const std::uint32_t from = in.Has(Mod::kUp)     ? l - deltas[l]
                               : in.Has(Mod::kDown) ? l + deltas[l]
                               : in.Has(Mod::kBfly) ? l ^ deltas[l]
                                                    : (l & segment) | (deltas[l] & ~segment);
    std::uint32_t got;
    std::memcpy(&got, d.at(lane), 4);
    // Out of its segment a lane keeps its own value. Where both have the same bits either will do.
    const std::uint32_t chosen = from < kWarpSize && bits[from] == got ? from : l;
    Piece* const into = d.pieces_at(lane);
    if (bits[chosen] == got) {
      std::copy_n(pieces[chosen].begin(), 2, into);
    } else {
      std::fill_n(into, 2, Piece{});
    }
  });
}

}  // namespace assay::emu
