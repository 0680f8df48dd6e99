#include <algorithm>
#include <vector>

#include "validator/emu/handlers/mma_forms.h"
#include "validator/emu/watch/propagation.h"
#include "validator/emu/watch/undefined.h"

namespace assay::emu {
namespace {

using ptx::Mod;
using ptx::Type;

/// Where an element begins in its register, which has 64 bits at most.
int BitOf(const MmaPlaces& places, int element) { return std::min(element * places.bits, 63); }

/// Of the positions of a matrix, by columns: which are undefined.
std::vector<bool> Gather(const Frame& frame, const DecodedOperand* operands,
                         const MmaPlaces& places) {
  std::vector<bool> undefined(static_cast<std::size_t>(places.size));
  const int each = places.registers * places.per_register;
  for (int r = 0; r < places.registers; ++r) {
    if (!IsRegister(operands[r]) || frame.undefined[operands[r].shadow] == 0) continue;
    ForEachLane(frame.undefined[operands[r].shadow], [&](int lane) {
      const std::uint64_t bits = UndefinedBits(frame, operands[r], lane);
      for (int e = 0; e < places.per_register; ++e) {
        const auto at = static_cast<std::size_t>(lane * each + r * places.per_register + e);
        if ((bits >> BitOf(places, e) & OnesOf(places.bits)) != 0)
          undefined[places.index[at]] = true;
      }
    });
  }
  return undefined;
}

}  // namespace

void PropagateMatrix(CoreWarp& warp, const Decoded& op, std::uint32_t origin) {
  Frame& frame = *warp.frame;
  // Of the whole warp: a lane's result may come from another lane's sources.
  bool any = false;
  std::uint32_t first = origin;
  for (const DecodedOperand* o = op.operands + op.destinations;
       !any && o != op.operands + op.operand_count; ++o) {
    any = IsRegister(*o) && frame.undefined[o->shadow] != 0;
    if (any) first = frame.origin[o->shadow];
  }
  const auto whole = [&](LaneMask undefined) {
    for (std::size_t i = 0; i < op.destinations; ++i) {
      if (IsRegister(op.operands[i]))
        SetUndefined(frame, op.operands[i].shadow, warp.exec, undefined, origin);
    }
  };
  const MmaOptions options = UnpackMma(op.immediate);
  // Each quad pair computes a product of its own: all of it, then.
  if (op.source->Has(Mod::kM8n8k4) && options.a == Type::kF16) return whole(any ? kAllLanes : 0);
  const MmaForm& form = MmaFormAt(op.aux);
  const MmaPlaces& d_places = options.d == Type::kF16 ? form.half_accumulator : form.accumulator;
  const MmaPlaces& c_places = options.c == Type::kF16 ? form.half_accumulator : form.accumulator;
  const DecodedOperand* const a_operands = op.operands + d_places.registers;
  const DecodedOperand* const b_operands = a_operands + form.a.registers;
  const DecodedOperand* const c_operands = b_operands + form.b.registers;
  // Sparsity metadata say which element is where.
  const DecodedOperand* const behind = c_operands + c_places.registers;
  for (const DecodedOperand* o = behind; o != op.operands + op.operand_count; ++o) {
    if (IsRegister(*o) && frame.undefined[o->shadow] != 0) return whole(kAllLanes);
  }
  const auto m = static_cast<std::size_t>(form.shape.m);
  const std::vector<bool> a = Gather(frame, a_operands, form.a);
  const std::vector<bool> b = Gather(frame, b_operands, form.b);
  std::vector<bool> d = Gather(frame, c_operands, c_places);
  std::vector<bool> rows(m);
  for (std::size_t i = 0; i < a.size(); ++i) rows[i % m] = rows[i % m] || a[i];
  const std::size_t per_column = b.size() / static_cast<std::size_t>(form.shape.n);
  for (std::size_t i = 0; i < d.size(); ++i) {
    const auto column = b.begin() + static_cast<std::ptrdiff_t>(i / m * per_column);
    if (rows[i % m] || std::find(column, column + static_cast<std::ptrdiff_t>(per_column), true) !=
                           column + static_cast<std::ptrdiff_t>(per_column))
      d[i] = true;
  }
  const int each = d_places.registers * d_places.per_register;
  for (int r = 0; r < d_places.registers; ++r) {
    LaneBitsets bits{};
    for (int lane = 0; lane < kWarpSize; ++lane) {
      for (int e = 0; e < d_places.per_register; ++e) {
        const auto at = static_cast<std::size_t>(lane * each + r * d_places.per_register + e);
        if (d[d_places.index[at]])
          bits[static_cast<std::size_t>(lane)] |= OnesOf(d_places.bits) << BitOf(d_places, e);
      }
    }
    SetUndefinedBits(frame, op.operands[r], warp.exec, bits, first);
  }
}

}  // namespace assay::emu
