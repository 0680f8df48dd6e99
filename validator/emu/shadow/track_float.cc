// Shadow values through floating-point arithmetic, conversions and comparisons.
#include <algorithm>
#include <cmath>
#include <span>

#include "validator/emu/shadow/lanes.h"
#include "validator/emu/shadow/tracker.h"

namespace assay::emu {
namespace {

using ptx::Mod;

/// An integer operand as a number, by its PTX type.
double IntegerAt(const std::byte* at, std::size_t stride, ptx::Type type) {
  const int width = ptx::BitsOf(type);
  std::uint64_t bits = BitsAt(at, std::min<std::size_t>(stride, 8));
  if (width < 64) bits &= (std::uint64_t{1} << width) - 1;
  const bool is_signed = type >= ptx::Type::kS8 && type <= ptx::Type::kS64;
  if (!is_signed) return static_cast<double>(bits);
  const int shift = 64 - width;
  return static_cast<double>(static_cast<std::int64_t>(bits << shift) >> shift);
}

double RoundedBy(const ptx::Instruction& in, double value) {
  if (in.Has(Mod::kRzi)) return std::trunc(value);
  if (in.Has(Mod::kRmi)) return std::floor(value);
  if (in.Has(Mod::kRpi)) return std::ceil(value);
  return std::nearbyint(value);
}

bool Holds(const ptx::Instruction& in, double a, double b) {
  const bool unordered = std::isnan(a) || std::isnan(b);
  const auto has = [&](Mod ordered, Mod with_nan) { return in.Has(ordered) || in.Has(with_nan); };
  if (unordered) return false;
  if (has(Mod::kEq, Mod::kEqu)) return a == b;
  if (has(Mod::kNe, Mod::kNeu)) return a != b;
  if (has(Mod::kLt, Mod::kLtu)) return a < b;
  if (has(Mod::kLe, Mod::kLeu)) return a <= b;
  if (has(Mod::kGt, Mod::kGtu)) return a > b;
  if (has(Mod::kGe, Mod::kGeu)) return a >= b;
  return false;
}

}  // namespace

void ShadowTracker::RunFormula(CoreWarp& warp, const Decoded& op, const Plan& plan) {
  const std::size_t bytes = BytesOf(plan.from);
  const std::size_t count = plan.operands;
  const LaneMask lanes = warp.exec;
  // Before the instruction runs: its destination may be one of its sources.
  Number before[kWarpSize][2][3];
  for (std::size_t i = 0; i < count; ++i) {
    const DecodedOperand& operand = op.operands[op.destinations + i];
    const Register source = RegisterOf(warp, operand);
    if (source.data == nullptr || source.stride < bytes * plan.packed) {
      ++lost_;
      op.run(warp, op);
      Forget(warp, op, lanes);
      return;
    }
    ForLanesIn(lanes, [&](int lane) {
      for (std::size_t e = 0; e < plan.packed; ++e) {
        before[lane][e][i] =
            Read(plan.from, source.at(lane) + e * bytes,
                 *source.live != 0 ? source.pieces_at(lane) + e * bytes / 2 : nullptr);
      }
    });
  }
  op.run(warp, op);
  const Register d = RegisterOf(warp, op.operands[0]);
  if (d.data == nullptr || d.stride < bytes * plan.packed) return;
  const bool extreme = plan.formula->extreme();
  const bool largest = plan.formula->operation == ptx::Operation::kGreatest;
  const auto evaluate = [&](const Operands& x) {
    Formula result = extreme ? Extreme(x, plan.operands, largest) : plan.formula->evaluate(x);
    const double kept = plan.saturates         ? std::clamp(result.value, 0.0, 1.0)
                        : plan.clamps_negative ? std::max(result.value, 0.0)
                                               : result.value;
    return kept == result.value ? result : Formula{kept, {}};
  };
  ForLanesIn(lanes, [&](int lane) {
    for (std::size_t e = 0; e < plan.packed; ++e) {
      const Number* const x = before[lane][e];
      Operands actual{}, shadow{};
      bool history = false;
      for (std::size_t i = 0; i < count; ++i) {
        actual[i] = x[i].actual;
        shadow[i] = x[i].shadow;
        history = history || x[i].id != kExact;
      }
      const std::byte* const at = d.at(lane) + e * bytes;
      const double result = ToDouble(plan.to, BitsAt(at, bytes));
      const Formula exact = evaluate(actual);
      ValueId id = kExact;
      if (!plan.steps) {
        id = Result(plan, exact, history ? evaluate(shadow).value : exact.value, x, count, result);
      } else if (history && std::fabs(evaluate(shadow).value - result) > 1) {
        ++flipped_;
      }
      if (id == kExact && *d.live == 0) continue;
      *d.live = 1;
      Write(id, plan.to, at, d.pieces_at(lane) + e * bytes / 2);
    }
  });
}

void ShadowTracker::RunConversion(CoreWarp& warp, const Decoded& op, const Plan& plan) {
  const LaneMask lanes = warp.exec;
  const std::size_t from_bytes = BytesOf(plan.from);
  const std::size_t to_bytes = BytesOf(plan.to);
  Number before[kWarpSize][2];
  for (std::size_t e = 0; e < plan.packed; ++e) {
    // cvt.rn.bf16x2.f32 d, a, b: a becomes the upper half.
    const Register source = RegisterOf(warp, op.operands[op.destinations + plan.packed - 1 - e]);
    if (source.data == nullptr || source.stride < from_bytes) {
      ++lost_;
      op.run(warp, op);
      Forget(warp, op, lanes);
      return;
    }
    ForLanesIn(lanes, [&](int lane) {
      before[lane][e] =
          Read(plan.from, source.at(lane), *source.live != 0 ? source.pieces_at(lane) : nullptr);
    });
  }
  op.run(warp, op);
  const Register d = RegisterOf(warp, op.operands[0]);
  if (d.data == nullptr || d.stride < to_bytes * plan.packed) return;
  ForLanesIn(lanes, [&](int lane) {
    for (std::size_t e = 0; e < plan.packed; ++e) {
      const Number& from = before[lane][e];
      const std::byte* const at = d.at(lane) + e * to_bytes;
      const double result = ToDouble(plan.to, BitsAt(at, to_bytes));
      ValueId id = kExact;
      if (plan.act != Act::kRoundToIntegral) {
        id = Converted(plan, from, result);
      } else if (from.id != kExact && RoundedBy(*op.source, from.shadow) != result) {
        ++flipped_;
      }
      if (id == kExact && *d.live == 0) continue;
      *d.live = 1;
      Piece* const pieces = d.pieces_at(lane) + e * to_bytes / 2;
      if (plan.packed == 1) std::fill_n(pieces, d.halves(), Piece{});
      Write(id, plan.to, at, pieces);
    }
  });
}

void ShadowTracker::RunFromInteger(CoreWarp& warp, const Decoded& op, const Plan& plan) {
  const LaneMask lanes = warp.exec;
  const Register source = RegisterOf(warp, op.operands[op.destinations]);
  double before[kWarpSize] = {};
  if (source.data != nullptr) {
    ForLanesIn(lanes, [&](int lane) {
      before[lane] = IntegerAt(source.at(lane), source.stride, op.source->type(1));
    });
  }
  op.run(warp, op);
  const Register d = RegisterOf(warp, op.operands[0]);
  if (d.data == nullptr || source.data == nullptr || d.stride < BytesOf(plan.to)) return;
  ForLanesIn(lanes, [&](int lane) {
    const double result = ToDouble(plan.to, BitsAt(d.at(lane), BytesOf(plan.to)));
    const Number from{before[lane], before[lane], kExact};
    const ValueId id = Converted(plan, from, result);
    if (id == kExact && *d.live == 0) return;
    *d.live = 1;
    std::fill_n(d.pieces_at(lane), d.halves(), Piece{});
    Write(id, plan.to, d.at(lane), d.pieces_at(lane));
  });
}

void ShadowTracker::RunToInteger(CoreWarp& warp, const Decoded& op, const Plan& plan) {
  const Register source = RegisterOf(warp, op.operands[op.destinations]);
  if (source.data != nullptr && *source.live != 0 && source.stride >= BytesOf(plan.from)) {
    ForLanesIn(warp.exec, [&](int lane) {
      const Number from = Read(plan.from, source.at(lane), source.pieces_at(lane));
      if (RoundedBy(*op.source, from.shadow) != RoundedBy(*op.source, from.actual)) ++flipped_;
    });
  }
  op.run(warp, op);
  Forget(warp, op, warp.exec);
}

void ShadowTracker::RunCompare(CoreWarp& warp, const Decoded& op, const Plan& plan) {
  const std::size_t first = op.destinations;
  if (op.operand_count >= first + 2 && AnyLive(warp, op, first, first + 2)) {
    const Register a = RegisterOf(warp, op.operands[first]);
    const Register b = RegisterOf(warp, op.operands[first + 1]);
    const std::size_t bytes = BytesOf(plan.from);
    if (a.data != nullptr && b.data != nullptr && a.stride >= bytes * plan.packed &&
        b.stride >= bytes * plan.packed) {
      ForLanesIn(warp.exec, [&](int lane) {
        for (std::size_t e = 0; e < plan.packed; ++e) {
          const std::size_t at = e * bytes;
          const Number x = Read(plan.from, a.at(lane) + at, a.pieces_at(lane) + at / 2);
          const Number y = Read(plan.from, b.at(lane) + at, b.pieces_at(lane) + at / 2);
          if (Holds(*op.source, x.actual, y.actual) != Holds(*op.source, x.shadow, y.shadow))
            ++flipped_;
        }
      });
    }
  }
  op.run(warp, op);
}

}  // namespace assay::emu
