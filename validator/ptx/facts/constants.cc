// Constants that decide or divide something.
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <set>
#include <tuple>

#include "validator/ptx/facts/compute_impl.h"
#include "validator/ptx/isa.h"

namespace assay::facts {

using ptx::Instruction;
using ptx::Operand;
using ptx::Operation;

namespace {

constexpr std::size_t kMostConstants = 4096;

std::optional<Constant::How> HowOf(Operation operation) {
  switch (operation) {
    case Operation::kCompare:
    case Operation::kCompareToValue:
    case Operation::kLeast:
    case Operation::kGreatest:
      return Constant::How::kCompared;
    case Operation::kRemainder:
    case Operation::kQuotient:
      return Constant::How::kDivisor;
    case Operation::kAnd:
      return Constant::How::kMask;
    case Operation::kShiftRight:
      return Constant::How::kShift;
    default:
      return std::nullopt;
  }
}

Constant ConstantOf(Constant::How how, const Operand& operand) {
  Constant constant;
  constant.how = how;
  constant.real = operand.immediate_type != ptx::Type::kNone;
  if (!constant.real) {
    constant.integer = static_cast<std::int64_t>(operand.bits);
  } else if (operand.immediate_type == ptx::Type::kF32) {
    constant.number =
        static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(operand.bits)));
  } else {
    constant.number = std::bit_cast<double>(operand.bits);
  }
  return constant;
}

/// A short table of integers, by its alignment: a compiler writes it as bytes.
void AddTable(const ptx::Variable& variable, Facts& facts) {
  constexpr std::size_t kMostEntries = 64;
  const std::size_t size = variable.align;
  const bool of_words = size == 4 || size == 8;
  if (!of_words || !variable.relocations.empty() || variable.bytes > kMostEntries * size) return;
  for (std::size_t at = 0; at < variable.initialiser.size(); at += size) {
    std::array<std::byte, 8> word{};
    std::ranges::copy(variable.initialiser.begin() + static_cast<std::ptrdiff_t>(at),
                      variable.initialiser.begin() + static_cast<std::ptrdiff_t>(std::min(
                                                         at + size, variable.initialiser.size())),
                      word.begin());
    const Constant entry = {.how = Constant::How::kTable,
                            .integer = std::bit_cast<std::int64_t>(word)};
    if (std::ranges::find(facts.constants, entry) == facts.constants.end() &&
        facts.constants.size() < kMostConstants)
      facts.constants.push_back(entry);
  }
}

bool IsNamed(const ptx::Module& module, std::size_t variable) {
  const auto names = [&](const Operand& operand) {
    return operand.has_symbol && operand.symbol.scope == ptx::SymbolRef::Scope::kModule &&
           operand.symbol.index == variable;
  };
  return std::ranges::any_of(module.functions, [&](const ptx::Function& function) {
    return std::ranges::any_of(function.body, [&](const Instruction& in) {
      return std::ranges::any_of(in.operands, names);
    });
  });
}

}  // namespace

void FindConstants(const ptx::Module& module, const SiteFinder& sites, Facts& facts) {
  std::set<std::tuple<Constant::How, bool, std::uint64_t, std::uint32_t>> seen;
  for (const ptx::Function& function : module.functions) {
    for (const Instruction& in : function.body) {
      const auto how = HowOf(ptx::FormOf(in).rules.operation);
      if (!how) continue;
      for (const Operand& operand : in.operands) {
        if (operand.kind != Operand::Kind::kImmediate || facts.constants.size() >= kMostConstants)
          continue;
        Constant constant = ConstantOf(*how, operand);
        constant.own_line = sites.OwnLine(in);
        if (seen.emplace(constant.how, constant.real, operand.bits, constant.own_line).second)
          facts.constants.push_back(constant);
      }
    }
  }
  // Headers leave tables behind that nobody reads.
  for (std::size_t i = 0; i < module.variables.size(); ++i) {
    const ptx::Variable& variable = module.variables[i];
    if ((variable.space == ptx::Space::kConst || variable.space == ptx::Space::kGlobal) &&
        IsNamed(module, i))
      AddTable(variable, facts);
  }
}

}  // namespace assay::facts
