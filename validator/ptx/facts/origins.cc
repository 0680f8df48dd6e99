#include "validator/ptx/facts/origins.h"

#include <algorithm>

#include "validator/ptx/facts/origin_solver.h"

namespace assay::facts {

using ptx::Operand;
using ptx::SymbolRef;

bool OriginSet::Add(Origin origin) {
  if (everything_) return false;
  const auto at = std::ranges::lower_bound(origins_, origin);
  if (at != origins_.end() && *at == origin) return false;
  if (origins_.size() >= kMost) return AddEverything();
  origins_.insert(at, origin);
  return true;
}

bool OriginSet::Add(const OriginSet& other, bool derived) {
  if (other.everything_) return AddEverything();
  if (&other == this && !derived) return false;
  bool grew = false;
  for (const Origin& origin : std::vector<Origin>(other.origins_))
    grew = Add(Origin{origin.object, derived || origin.derived}) || grew;
  return grew;
}

bool OriginSet::AddEverything() {
  if (everything_) return false;
  everything_ = true;
  origins_.clear();
  return true;
}

bool OriginSet::Has(ObjectIndex object) const {
  return everything_ || std::ranges::find(origins_, object, &Origin::object) != origins_.end();
}

bool IsUnknownAddress(const OriginSet& origins, const Origins& solution) {
  using Kind = Object::Kind;
  if (origins.Has(Origins::kMemory)) return true;
  return std::ranges::none_of(origins.origins(), [&](const Origin& origin) {
    const Kind kind = solution.object(origin.object).kind;
    return kind == Kind::kEntryParameter || kind == Kind::kModuleVariable ||
           kind == Kind::kFunctionVariable;
  });
}

Origins::Origins(const ptx::Module& module) : module_(module) { Solver(*this).Run(); }

OriginSet Origins::Of(std::uint32_t function, const Operand& operand) const {
  OriginSet origins;
  if (given_up_) {
    origins.AddEverything();
    return origins;
  }
  const bool symbol = operand.kind == Operand::Kind::kSymbol || operand.has_symbol;
  if (operand.kind == Operand::Kind::kRegister || operand.has_base_register)
    origins.Add(cells_[first_register_[function] + operand.reg]);
  if (symbol) {
    origins.Add(operand.symbol.scope == SymbolRef::Scope::kModule
                    ? first_module_variable_ + operand.symbol.index
                    : first_variable_[function] + operand.symbol.index);
  }
  if (operand.kind == Operand::Kind::kSpecial)
    origins.Add(special_[static_cast<std::size_t>(operand.special)]);
  for (const Operand& element : operand.elements) origins.Add(Of(function, element));
  return origins;
}

}  // namespace assay::facts
