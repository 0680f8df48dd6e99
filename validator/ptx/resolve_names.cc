// What a function's or a module's end settles: labels, forms, names that occur once.
#include <fmt/format.h>

#include <string>
#include <unordered_map>
#include <unordered_set>

#include "validator/ptx/isa.h"
#include "validator/ptx/parser.h"
#include "validator/ptx/parser_impl.h"

namespace assay::ptx {

Status Parser::ResolveLabels() {
  const auto find = [&](const Token& name, std::uint32_t scope) -> Result<std::uint32_t> {
    if (const auto target = labels_.Find(name.text, scope)) return *target;
    return Error_(name, fmt::format("unknown label '{}'", name.text.substr(0, 60)),
                  "labels are seen from their own scope and the scopes inside it");
  };
  for (const LabelUse& use : label_uses_) {
    ASSAY_TRY(function_.body[use.instruction].operands[use.operand].target,
              find(use.name, use.scope));
  }
  for (const TargetListUse& use : target_list_uses_) {
    const TargetList& list = target_lists_[use.list];
    branch_targets_ += list.names.size();
    if (branch_targets_ > kLimits.branch_targets_of_small_text + text_.size()) {
      return Error_(list.names[0], "too many branch targets in all", {}, ErrorKind::kLimit);
    }
    std::vector<InstructionIndex>& targets =
        function_.body[use.instruction].operands[use.operand].targets;
    for (const Token& name : list.names) {
      ASSAY_TRY(const std::uint32_t target, find(name, list.scope));
      targets.push_back(target);
    }
  }
  return {};
}

void Parser::ChooseForms() {
  for (std::size_t i = 0; i < function_.body.size(); ++i) {
    Instruction& in = function_.body[i];
    in.form = MatchForm(body_heads_[i]->candidates, module_, function_, in);
  }
}

void Parser::MakeNamesUnique() {
  // The sets hold views of names that stay where they are from then on.
  std::unordered_set<std::string_view> module_names;
  for (const Variable& variable : module_.variables) module_names.insert(variable.name);
  for (const Function& function : module_.functions) module_names.insert(function.name);
  for (Function& function : module_.functions) {
    std::unordered_set<std::string_view> taken;
    taken.reserve(function.registers.size() + function.variables.size() + function.labels.size());
    std::unordered_map<std::string, std::uint32_t> next;  // By the name as it was written.
    const auto make_unique = [&](std::string& name) {
      if (!module_names.contains(name) && taken.insert(name).second) return;
      std::uint32_t& number = next.try_emplace(name, 2).first->second;
      std::string candidate;
      do {
        candidate = fmt::format("{}${}", name, number++);
      } while (module_names.contains(candidate) || taken.contains(candidate));
      name = std::move(candidate);
      taken.insert(name);
    };
    // Parameters first, so that a parameter keeps its name when it can. A register parameter is one
    // name in three places.
    std::size_t position = 0;
    std::size_t in_registers = 0;
    for (std::vector<Variable>* list : {&function.returns, &function.params}) {
      for (Variable& parameter : *list) {
        if (parameter.name != "_") make_unique(parameter.name);
        if (!function.has_body) continue;
        function.variables[position++].name = parameter.name;
        if (parameter.space == Space::kReg)
          function.registers[in_registers++].name = parameter.name;
      }
    }
    for (std::size_t i = in_registers; i < function.registers.size(); ++i) {
      make_unique(function.registers[i].name);
    }
    for (std::size_t i = position; i < function.variables.size(); ++i) {
      make_unique(function.variables[i].name);
    }
    for (Prototype& prototype : function.prototypes) make_unique(prototype.name);
    for (auto& [name, target] : function.labels) make_unique(name);
  }
}

}  // namespace assay::ptx
