// Does an instruction fit a form? Modifiers in any order; operands through isa_operands.h.
#include <algorithm>
#include <array>

#include "validator/ptx/isa.h"
#include "validator/ptx/isa_operands.h"

namespace assay::ptx {
namespace {

bool Gated(const OperandRule& rule, const Instruction& in) {
  return std::any_of(rule.gate.begin(), rule.gate.end(), [&](Mod mod) { return in.Has(mod); });
}

/// Which rule each operand falls under; false when their number is impossible. Optional operands
/// are filled from the left, but a paired one only by a paired operand.
bool Assign(const Form& form, const Instruction& in, std::array<std::uint8_t, kMostSlots>& rules) {
  std::size_t needed = 0;
  for (const OperandRule& rule : form.operands) {
    if (!rule.optional && (rule.gate.empty() || Gated(rule, in))) ++needed;
  }
  if (in.operands.size() < needed || in.operands.size() > kMostSlots) return false;
  std::size_t spare = in.operands.size() - needed;
  std::size_t position = 0;
  for (std::size_t i = 0; i < form.operands.size(); ++i) {
    const OperandRule& rule = form.operands[i];
    if (!rule.gate.empty() && !Gated(rule, in)) continue;
    if (rule.optional) {
      const bool taken =
          spare > 0 && position < in.operands.size() && rule.paired == in.operands[position].paired;
      if (!taken) continue;
      --spare;
    }
    if (position >= in.operands.size()) return false;
    rules[position++] = static_cast<std::uint8_t>(i);
  }
  return position == in.operands.size();
}

}  // namespace

bool ModifiersFit(const Form& form, const Instruction& in) {
  std::array<bool, kMostSlots> filled{};
  std::size_t type = 0;
  std::size_t space = 0;
  const Space spaces[] = {in.space, in.space2};
  std::size_t space_count = in.space == Space::kGeneric ? 0 : in.space2 == Space::kGeneric ? 1 : 2;
  if (in.space == Space::kGeneric && in.space2 != Space::kGeneric) return false;
  bool width_taken = in.vector_width == 1;
  using SlotKind = ModifierSlot::Kind;
  for (std::size_t i = 0; i < form.slots.size(); ++i) {
    const ModifierSlot& slot = form.slots[i];
    switch (slot.kind) {
      case SlotKind::kType:
        filled[i] = type < in.types.size() && slot.Has(static_cast<std::uint16_t>(in.types[type]));
        type += filled[i] ? 1 : 0;
        break;
      case SlotKind::kSpace:
        filled[i] = space < space_count && slot.Has(static_cast<std::uint16_t>(spaces[space]));
        space += filled[i] ? 1 : 0;
        break;
      case SlotKind::kWidth:
        filled[i] = !width_taken && slot.Has(in.vector_width);
        width_taken |= filled[i];
        break;
      case SlotKind::kMod:
        break;
    }
  }
  if (type != in.types.size() || space != space_count || !width_taken) return false;
  for (const Mod mod : in.mods) {
    bool found = false;
    for (std::size_t i = 0; i < form.slots.size() && !found; ++i) {
      if (form.slots[i].kind != SlotKind::kMod || filled[i]) continue;
      found = filled[i] = form.slots[i].Has(static_cast<std::uint16_t>(mod));
    }
    if (!found) return false;
  }
  for (std::size_t i = 0; i < form.slots.size(); ++i) {
    if (!filled[i] && !form.slots[i].optional) return false;
    if (form.slots[i].with_previous && filled[i] != filled[i - 1]) return false;
  }
  return true;
}

std::vector<std::uint16_t> CandidateForms(const Instruction& in) {
  std::vector<std::uint16_t> candidates;
  for (const std::uint16_t index : FormsOf(in.opcode)) {
    if (ModifiersFit(Forms()[index], in)) candidates.push_back(index);
  }
  return candidates;
}

std::optional<Misfit> OperandsMisfit(const Form& form, const Module& module,
                                     const Function& function, const Instruction& in) {
  if (form.operands.size() == 1 && form.operands[0].body == OperandRule::Body::kCall) {
    const std::string_view problem = CallProblem(in);
    if (problem.empty()) return std::nullopt;
    return Misfit{1, problem};
  }
  std::array<std::uint8_t, kMostSlots> rules{};
  if (!Assign(form, in, rules)) return Misfit{-1, "the number of operands"};
  for (std::size_t i = 0; i < in.operands.size(); ++i) {
    const std::string_view problem =
        OperandProblem(form.operands[rules[i]], module, function, in, in.operands[i]);
    if (!problem.empty()) return Misfit{static_cast<int>(i), problem};
  }
  return std::nullopt;
}

std::uint16_t MatchForm(std::span<const std::uint16_t> candidates, const Module& module,
                        const Function& function, const Instruction& in) {
  const std::span<const Form> forms = Forms();
  for (const std::uint16_t index : candidates) {
    if (!OperandsMisfit(forms[index], module, function, in)) return index;
  }
  return 0;
}

OperandRules AssignRules(const Form& form, const Instruction& in) {
  OperandRules rules;
  rules.form_ = &form.operands;
  if (form.operands.size() == 1 && form.operands[0].body == OperandRule::Body::kCall) return rules;
  if (Assign(form, in, rules.index_)) rules.count_ = in.operands.size();
  return rules;
}

std::size_t OperandRules::written() const {
  std::size_t count = 0;
  while (count < count_ && (*this)[count].written) ++count;
  return count;
}

std::vector<MemoryRole> MemoryRoles(const Instruction& in) {
  std::vector<MemoryRole> roles;
  const OperandRules rules = RulesOf(in);
  bool first = true;
  for (std::size_t i = 0; i < rules.size(); ++i) {
    const OperandRule& rule = rules[i];
    if (rule.body != OperandRule::Body::kAddress && rule.body != OperandRule::Body::kTensor)
      continue;
    // The spaces are those of destination and source; what follows is an mbarrier.
    const Space space = first ? in.space : rule.mbarrier ? Space::kShared : in.space2;
    first = false;
    if (rule.loads || rule.stores)
      roles.push_back({i, space, rule.loads, rule.stores, rule.mbarrier});
  }
  return roles;
}

bool UpdatesMemory(const Form& form) {
  return std::ranges::any_of(form.operands, [](const OperandRule& rule) {
    return rule.loads && rule.stores && !rule.mbarrier;
  });
}

bool WritesMemory(const Form& form) {
  return std::ranges::any_of(form.operands, &OperandRule::stores);
}

}  // namespace assay::ptx
