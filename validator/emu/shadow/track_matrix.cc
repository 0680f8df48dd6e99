// Shadow values through matrix instructions. mma: every output is a sum of products, whatever the
// hardware does on the way. ldmatrix, stmatrix, wmma.load, wmma.store: pieces go where their
// elements go.
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "validator/emu/handlers/fragment_memory.h"
#include "validator/emu/handlers/mma_forms.h"
#include "validator/emu/memory.h"
#include "validator/emu/shadow/lanes.h"
#include "validator/emu/shadow/tracker.h"

namespace assay::emu {

void ShadowTracker::RunMatrix(CoreWarp& warp, const Decoded& op, const Plan& plan) {
  const MmaForm& form = MmaFormAt(op.aux);
  const MmaOptions options = UnpackMma(op.immediate);
  const auto [family, elements, m, n, k] = form.shape;
  const bool half_d = options.d == ptx::Type::kF16;
  const bool half_c = options.c == ptx::Type::kF16;
  const MmaPlaces& d_places = half_d ? form.half_accumulator : form.accumulator;
  const MmaPlaces& c_places = half_c ? form.half_accumulator : form.accumulator;
  const DecodedOperand* const a_operands = op.operands + d_places.registers;
  const DecodedOperand* const b_operands = a_operands + form.a.registers;
  const DecodedOperand* const c_operands = b_operands + form.b.registers;
  const auto visit = [&](const DecodedOperand* operands, const MmaPlaces& places,
                         NumberFormat format, auto body) {
    const int each = places.registers * places.per_register;
    // The first copy of an element that is held twice counts: it is visited last.
    for (int r = places.registers - 1; r >= 0; --r) {
      const Register reg = RegisterOf(warp, operands[r]);
      for (int lane = 0; lane < kWarpSize && reg.data != nullptr; ++lane) {
        for (int e = 0; e < places.per_register; ++e) {
          const std::size_t index =
              places.index[static_cast<std::size_t>(lane * each + r * places.per_register + e)];
          const std::size_t offset = static_cast<std::size_t>(e) * BytesOf(format);
          body(index, lane, reg, reg.at(lane) + offset, reg.pieces_at(lane) + offset / 2);
        }
      }
    }
  };
  const auto gather = [&](const DecodedOperand* operands, const MmaPlaces& places,
                          NumberFormat format) {
    std::vector<Number> matrix(static_cast<std::size_t>(places.size));
    visit(
        operands, places, format,
        [&](std::size_t index, int, const Register& reg, const std::byte* at, const Piece* pieces) {
          matrix[index] = Read(format, at, *reg.live != 0 ? pieces : nullptr);
        });
    return matrix;
  };
  const std::vector<Number> a = gather(a_operands, form.a, plan.from);
  const std::vector<Number> b = gather(b_operands, form.b, plan.from);
  const std::vector<Number> c =
      gather(c_operands, c_places, half_c ? NumberFormat::kF16 : NumberFormat::kF32);
  op.run(warp, op);
  const NumberFormat format = half_d ? NumberFormat::kF16 : NumberFormat::kF32;
  visit(op.operands, d_places, format,
        [&](std::size_t index, int lane, const Register& reg, const std::byte* at, Piece* pieces) {
          if ((warp.exec >> lane & 1) == 0) return;
          const std::size_t row = index % static_cast<std::size_t>(m);
          const std::size_t column = index / static_cast<std::size_t>(m);
          double exact = c[index].actual;
          double shadow = c[index].shadow;
          ledger_.Begin();
          ledger_.AddScaled(c[index].id, 1);
          for (std::size_t i = 0; i < static_cast<std::size_t>(k); ++i) {
            const Number& x = a[i * static_cast<std::size_t>(m) + row];
            const Number& y = b[column * static_cast<std::size_t>(k) + i];
            exact += x.actual * y.actual;
            shadow += x.shadow * y.shadow;
            // Zero times what is no number is none either.
            ledger_.AddScaled(x.id, std::isfinite(x.actual) ? y.actual : 1);
            ledger_.AddScaled(y.id, std::isfinite(y.actual) ? x.actual : 1);
          }
          const double actual = ToDouble(format, BitsAt(at, BytesOf(format)));
          const double rounding = actual - exact;
          if (std::isfinite(exact) && std::fabs(rounding) > 1e-14 * std::fabs(actual))
            Charge(plan, rounding);
          const ValueId id = ledger_.End(actual, shadow, format);
          if (id == kExact && *reg.live == 0) return;
          *reg.live = 1;
          Write(id, format, at, pieces);
        });
  static_cast<void>(n);
}

void ShadowTracker::LoadPieces(std::uint64_t key, std::size_t halves, const Register& to,
                               Piece* pieces) {
  for (std::size_t h = 0; h < halves; ++h) {
    const Piece* const piece = key == 0 ? nullptr : memory_.Find(key + h);
    if (piece != nullptr) *to.live = 1;
    pieces[h] = piece == nullptr ? Piece{} : *piece;
  }
}

void ShadowTracker::RunMatrixRows(CoreWarp& warp, const Decoded& op, const Plan& plan) {
  constexpr std::uint32_t kRowBytes = 16;
  const bool loads = op.destinations > 0;
  const std::size_t count = loads ? op.destinations : op.operand_count - std::size_t{1};
  const DecodedOperand* const registers = op.operands + (loads ? 0 : 1);
  const bool transposed = op.source->Has(ptx::Mod::kTrans);
  const bool live = !memory_.empty() || (!loads && AnyLive(warp, op, 1, op.operand_count));
  LaneAccess access;
  if (live) Addresses(warp, op.operands[loads ? count : 0], access);
  op.run(warp, op);
  if (!live || engine_.stopped) {
    if (loads) Forget(warp, op, warp.exec);
    return;
  }
  std::uint64_t keys[kWarpSize] = {};
  for (std::size_t i = 0; i < 8 * count; ++i) {
    const auto lane = static_cast<int>(i);
    const std::byte* const row =
        HostAddress(warp, FragmentSpace(*op.source), access.address[i], lane, kRowBytes);
    keys[i] = row == nullptr ? 0 : KeyOf(warp, row);
  }
  for (std::size_t j = 0; j < count; ++j) {
    const Register reg = RegisterOf(warp, registers[j]);
    if (reg.data == nullptr) continue;
    for (int lane = 0; lane < kWarpSize; ++lane) {
      if ((warp.exec >> lane & 1) == 0) continue;
      Piece pieces[2];
      if (!loads && *reg.live != 0) std::copy_n(reg.pieces_at(lane), 2, pieces);
      if (!loads) MarkSplit(pieces, 2, plan.site);
      for (int e = 0; e < 2; ++e) {
        const MatrixPlace at = LdmatrixPlace(lane, e, transposed);
        const std::uint64_t row = keys[8 * j + static_cast<std::size_t>(at.row)];
        const std::uint64_t key = row == 0 ? 0 : row + static_cast<std::uint64_t>(at.column);
        if (loads) {
          LoadPieces(key, 1, reg, reg.pieces_at(lane) + e);
        } else if (key != 0) {
          memory_.Set(key, pieces[e]);
        }
      }
    }
  }
}

void ShadowTracker::RunFragment(CoreWarp& warp, const Decoded& op, const Plan& plan) {
  const bool loads = op.destinations > 0;
  const FragmentInMemory fragment(warp, op, loads ? op.destinations : std::size_t{0});
  const DecodedOperand* const registers = op.operands + (loads ? 0 : 1);
  const auto count = static_cast<std::size_t>(fragment.registers());
  const bool live = !memory_.empty() || (!loads && AnyLive(warp, op, 1, 1 + count));
  op.run(warp, op);
  const std::uint32_t bytes = fragment.piece_bytes();
  if (!live || engine_.stopped || bytes < 2) {
    if (loads) Forget(warp, op, warp.exec);
    return;
  }
  const std::size_t halves = bytes / 2;
  for (std::size_t r = 0; r < count; ++r) {
    const Register reg = RegisterOf(warp, registers[r]);
    for (int p = 0; p < fragment.pieces() && reg.data != nullptr; ++p) {
      std::uint64_t addresses[kWarpSize];
      fragment.Place(static_cast<int>(r), p, addresses);
      for (int lane = 0; lane < kWarpSize; ++lane) {
        if ((warp.exec >> lane & 1) == 0) continue;
        const std::byte* const at =
            HostAddress(warp, FragmentSpace(*op.source), addresses[lane], lane, bytes);
        const std::uint64_t key = at == nullptr ? 0 : KeyOf(warp, at);
        Piece* const mine = reg.pieces_at(lane) + static_cast<std::size_t>(p) * halves;
        if (loads) {
          LoadPieces(key, halves, reg, mine);
          continue;
        }
        if (key == 0) continue;
        Piece stored[4];
        if (*reg.live != 0) std::copy_n(mine, halves, stored);
        MarkSplit(stored, halves, plan.site);
        for (std::size_t h = 0; h < halves; ++h) memory_.Set(key + h, stored[h]);
      }
    }
  }
}

}  // namespace assay::emu
