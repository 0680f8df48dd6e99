// Constants that select what an instruction does, and so must be known values. A table: opcode,
// operand, what is allowed.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "validator/ptx/verifier_impl.h"

namespace assay::ptx {
namespace {

struct Allowed {
  Opcode opcode;
  std::optional<Mod> with;  ///< Only for instructions that have this modifier.
  int operand;              ///< Index; negative: from the end, -1 the last.
  std::int64_t low, high;
  std::int64_t multiple = 1;  ///< Values are multiples of this.
};

constexpr std::int64_t kAny = std::int64_t{1} << 32;

constexpr Allowed kTable[] = {
    {Opcode::kLop3, std::nullopt, 4, 0, 255},
    {Opcode::kLop3, Mod::kAnd, 5, 0, 255},
    {Opcode::kLop3, Mod::kOr, 5, 0, 255},
    {Opcode::kBar, std::nullopt, 0, 0, 15},
    {Opcode::kBar, Mod::kRed, 1, 0, 15},
    {Opcode::kBarrier, std::nullopt, 0, 0, 15},
    {Opcode::kBarrier, Mod::kRed, 1, 0, 15},
    {Opcode::kCpAsync, Mod::kCg, 2, 16, 16},
    {Opcode::kCpAsync, Mod::kCa, 2, 4, 16, 4},
    {Opcode::kCpAsyncBulk, std::nullopt, 2, 0, kAny, 16},
    {Opcode::kCpReduceAsyncBulk, std::nullopt, 2, 0, kAny, 16},
    {Opcode::kCpAsyncBulkPrefetch, std::nullopt, 1, 0, kAny, 16},
    {Opcode::kDiscard, std::nullopt, 1, 128, 128},
    {Opcode::kApplyPriority, std::nullopt, 1, 128, 128},
    {Opcode::kFence, Mod::kTensormapGeneric, 1, 128, 128},
    {Opcode::kTensormapCpFenceproxy, std::nullopt, 2, 128, 128},
    {Opcode::kSetmaxnreg, std::nullopt, 0, 24, 256, 8},
    {Opcode::kPmevent, std::nullopt, 0, 0, 65535},
    {Opcode::kMma, Mod::kSp, -1, 0, 3},
    {Opcode::kMma, Mod::kSpOrderedMetadata, -1, 0, 3},
    {Opcode::kStBulk, std::nullopt, 2, 0, 0},
};

std::string OutOfRange(const Operand& operand, const Allowed& row) {
  if (operand.kind != Operand::Kind::kImmediate || operand.immediate_type != Type::kNone) return {};
  const auto value = static_cast<std::int64_t>(operand.bits);
  if (value >= row.low && value <= row.high && value % row.multiple == 0) {
    // Of the multiples of four up to 16, 12 is no size of a copy.
    if (row.opcode != Opcode::kCpAsync || value != 12) return {};
  }
  if (row.low == row.high) return fmt::format("the constant {} must be {}", value, row.low);
  return fmt::format("the constant {} is not allowed here", value);
}

/// wgmma: after the descriptors, scale-d; then factors that are 1 or -1, then transpositions that
/// are 0 or 1.
std::string WgmmaConstant(const Instruction& in) {
  std::size_t first = 4;
  if (in.Has(Mod::kSp)) {
    first += 2;
    const std::int64_t selector = static_cast<std::int64_t>(in.operands[4].bits);
    if (selector < 0 || selector > 3) return "the selector is 0 to 3";
  }
  for (std::size_t i = first; i < in.operands.size(); ++i) {
    const auto value = static_cast<std::int64_t>(in.operands[i].bits);
    const bool factor = i < first + 2;
    if (factor ? value != 1 && value != -1 : value != 0 && value != 1) {
      return factor ? "a factor is 1 or -1" : "a transposition is 0 or 1";
    }
  }
  return {};
}

}  // namespace

std::string BadConstant(const Instruction& in) {
  if (in.opcode == Opcode::kWgmmaMmaAsync) return WgmmaConstant(in);
  for (const Allowed& row : kTable) {
    if (row.opcode != in.opcode || (row.with && !in.Has(*row.with))) continue;
    const int count = static_cast<int>(in.operands.size());
    const int index = row.operand < 0 ? count + row.operand : row.operand;
    if (index < 0 || index >= count) continue;
    std::string problem = OutOfRange(in.operands[static_cast<std::size_t>(index)], row);
    if (!problem.empty()) return problem;
  }
  return {};
}

}  // namespace assay::ptx
