// Shadow values through mma: every output is a sum of products, whatever the hardware does on the way.
#include <array>
#include <cmath>
#include <vector>

#include "validator/emu/handlers/mma_forms.h"
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
            ledger_.AddScaled(x.id, y.actual);
            ledger_.AddScaled(y.id, x.actual);
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

}  // namespace assay::emu
