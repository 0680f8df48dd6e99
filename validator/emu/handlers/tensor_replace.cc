// tensormap.replace and tensormap.cp_fenceproxy: tensor maps that a kernel puts together itself (PTX
// ISA 9.7.9.26, 9.7.13.16).
//
// The driver's layout of the 128 bytes is secret, so a kernel can only change a map that it was
// given, or begin with zeros; here as there. Fences of the tensormap proxy order nothing that is not
// in order here; the release that comes with cp_fenceproxy is told to the race detector.
#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "validator/emu/handlers/bulk.h"
#include "validator/emu/handlers/partial_rows.h"
#include "validator/emu/scheduler.h"
#include "validator/emu/site.h"
#include "validator/emu/tensor_map.h"

namespace assay::emu {
namespace {

using ptx::Instruction;
using ptx::Mod;
using ptx::Opcode;
using ptx::Space;

constexpr std::uint32_t kMapAlignment = 64;
constexpr auto kBytes = static_cast<std::uint32_t>(kTensorMapBytes);

struct FieldRow {
  Mod mod;
  TensorMapField field;
  bool ordinal;  ///< A dimension stands before the value.
};
constexpr FieldRow kFields[] = {
    {Mod::kGlobalAddress, TensorMapField::kAddress, false},
    {Mod::kRank, TensorMapField::kRank, false},
    {Mod::kBoxDim, TensorMapField::kBox, true},
    {Mod::kGlobalDim, TensorMapField::kSize, true},
    {Mod::kElementStride, TensorMapField::kElementStride, true},
    {Mod::kGlobalStride, TensorMapField::kStride, true},
    {Mod::kElemtype, TensorMapField::kType, false},
    {Mod::kInterleaveLayout, TensorMapField::kInterleave, false},
    {Mod::kSwizzleMode, TensorMapField::kSwizzle, false},
    {Mod::kFillMode, TensorMapField::kFill, false},
};

const FieldRow* FieldOf(const Instruction& in) {
  for (const FieldRow& row : kFields) {
    if (in.Has(row.mod)) return &row;
  }
  return nullptr;
}

std::uint64_t ValueOf(CoreWarp& warp, const DecodedOperand& operand, int lane) {
  return operand.bits == 64 ? warp.Lanes<std::uint64_t>(operand.slot)[lane]
                            : warp.Lanes<std::uint32_t>(operand.slot)[lane];
}

/// Before PTX 8.5 strides were given without their four low bits.
int StrideShift(const ptx::Module& module) {
  const bool bytes =
      module.version_major > 8 || (module.version_major == 8 && module.version_minor >= 5);
  return bytes ? 0 : 4;
}

/// The map is written as a whole, by one lane.
void Written(CoreWarp& warp, const Side& side, int lane) {
  if (warp.device->race) warp.device->race->OnAccess(side.event);
  const MemoryRegion& region = *side.access.RegionOf(lane);
  if (region.defined != nullptr) {
    region.defined->Set(static_cast<std::uint64_t>(side.access.at(lane) - region.data),
                        kTensorMapBytes, true);
  }
  warp.device->last_progress = warp.device->counters.steps;
}

/// operands: map, for some fields a dimension, value. `aux`: the row of kFields.
void Replace(Warp& base, const Decoded& op) {
  CoreWarp& warp = Core(base);
  const FieldRow& row = kFields[op.aux];
  const Space space = op.source->space == Space::kReg ? Space::kGeneric : op.source->space;
  for (LaneMask rest = warp.exec; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    Side side;
    if (!ResolveSide(warp, op, space, BulkAddress(warp, op.operands[0], lane), lane, kBytes, true,
                     side, kMapAlignment))
      return;
    TensorMapImage image;
    std::memcpy(image.data(), side.access.at(lane), image.size());
    const std::uint64_t ordinal = row.ordinal ? ValueOf(warp, op.operands[1], lane) : 0;
    std::uint64_t value = ValueOf(warp, op.operands[row.ordinal ? 2 : 1], lane);
    if (row.field == TensorMapField::kStride) value <<= StrideShift(warp.device->program.module);
    const std::string_view name = ptx::Name(row.mod);
    switch (ReplaceField(image, row.field, static_cast<std::uint32_t>(ordinal), value)) {
      case MapReplaced::kDone:
        break;
      case MapReplaced::kNoMap:
        return BulkMisuse(warp, op, lane,
                          "tensormap.replace on bytes that are neither a tensor map nor zero");
      case MapReplaced::kOutOfRange:
        return BulkMisuse(warp, op, lane,
                          fmt::format("a tensor map cannot have {} {}{}", name, value,
                                      row.ordinal ? fmt::format(" in place {}", ordinal) : ""));
      case MapReplaced::kNotModelled:
        warp.device->End(Stop::kUnsupported, fmt::format("a tensor map with {} {}, {}", name, value,
                                                         LineOf(*warp.device, warp.PcOf(op))));
        warp.outcome = Outcome::kStop;
        return;
    }
    std::memcpy(side.access.at(lane), image.data(), image.size());
    Written(warp, side, lane);
  }
}

/// operands: destination, source, size. The warp copies once. `aux`: the scope.
void CopyMap(Warp& base, const Decoded& op) {
  CoreWarp& warp = Core(base);
  const int lane = std::countr_zero(warp.exec);
  Side from, to;
  if (!ResolveSide(warp, op, Space::kSharedCta, BulkAddress(warp, op.operands[1], lane), lane,
                   kBytes, false, from, kMapAlignment) ||
      !ResolveSide(warp, op, Space::kGlobal, BulkAddress(warp, op.operands[0], lane), lane, kBytes,
                   true, to, kMapAlignment))
    return;
  std::memcpy(to.access.at(lane), from.access.at(lane), kTensorMapBytes);
  if (warp.device->race) warp.device->race->OnAccess(from.event);
  Written(warp, to, lane);
  if (warp.device->race) {
    warp.device->race->OnFence(warp.number, warp.exec, Order::kRelease, static_cast<Scope>(op.aux));
  }
}

Handler ResolveReplace(const Instruction& in, Decoded& decoded) {
  const FieldRow* const row = FieldOf(in);
  if (row == nullptr || decoded.operand_count != (row->ordinal ? 3 : 2)) return nullptr;
  for (std::size_t i = 1; i < decoded.operand_count; ++i) {
    if (decoded.operands[i].kind != DecodedOperand::Kind::kSlot) return nullptr;
  }
  decoded.aux = static_cast<std::uint32_t>(row - kFields);
  decoded.flags |= kFlagMemory;
  decoded.propagate = kPropagateSelf;
  return &Replace;
}

Handler ResolveCopyMap(const Instruction& in, Decoded& decoded) {
  const bool whole = in.operands.size() == 3 &&
                     in.operands[2].kind == ptx::Operand::Kind::kImmediate &&
                     in.operands[2].bits == kTensorMapBytes;
  if (!whole) return nullptr;
  Scope scope = Scope::kSys;
  if (in.Has(Mod::kCta)) scope = Scope::kCta;
  if (in.Has(Mod::kCluster)) scope = Scope::kCluster;
  if (in.Has(Mod::kGpu)) scope = Scope::kGpu;
  decoded.aux = static_cast<std::uint32_t>(scope);
  decoded.flags |= kFlagControl | kFlagWarpWide | kFlagMemory;
  decoded.propagate = kPropagateSelf;
  return &CopyMap;
}

constexpr ResolverRow kRows[] = {
    {Opcode::kTensormapReplace, &ResolveReplace},
    {Opcode::kTensormapCpFenceproxy, &ResolveCopyMap},
};

}  // namespace

std::span<const ResolverRow> TensorMapRows() { return kRows; }

}  // namespace assay::emu
