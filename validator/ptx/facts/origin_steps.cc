// What each instruction is to the analysis, off its row; where objects and registers are kept.
#include <algorithm>

#include "validator/ptx/facts/origin_solver.h"

namespace assay::facts {

using ptx::Form;
using ptx::Instruction;
using ptx::Operand;
using ptx::Operation;

void Solver::Allocate() {
  using Kind = Object::Kind;
  out_.objects_.push_back({Kind::kMemory, 0, 0});
  out_.first_module_variable_ = static_cast<ObjectIndex>(out_.objects_.size());
  for (std::uint32_t i = 0; i < module_.variables.size(); ++i)
    out_.objects_.push_back({Kind::kModuleVariable, 0, i});
  Origins::Cell cells = 0;
  out_.special_.assign(1 + static_cast<std::size_t>(ptx::SpecialRegister::kPm7Wide), 0);
  for (std::uint32_t f = 0; f < module_.functions.size(); ++f) {
    const ptx::Function& function = module_.functions[f];
    out_.first_register_.push_back(cells);
    cells += static_cast<Origins::Cell>(function.registers.size()) + 1;
    out_.first_variable_.push_back(static_cast<ObjectIndex>(out_.objects_.size()));
    for (std::uint32_t i = 0; i < function.variables.size(); ++i)
      out_.objects_.push_back({Kind::kFunctionVariable, f, i});
  }
  first_parameter_ = static_cast<ObjectIndex>(out_.objects_.size());
  for (std::uint32_t f = 0; f < module_.functions.size(); ++f) {
    if (!module_.functions[f].is_entry) continue;
    for (std::uint32_t i = 0; i < module_.functions[f].params.size(); ++i)
      out_.objects_.push_back({Kind::kEntryParameter, f, i});
  }
  out_.cells_.resize(cells);
}

ObjectIndex Solver::Special(ptx::SpecialRegister special) {
  ObjectIndex& object = out_.special_[static_cast<std::size_t>(special)];
  if (object == 0) {
    object = static_cast<ObjectIndex>(out_.objects_.size());
    out_.objects_.push_back(
        {Object::Kind::kSpecialRegister, 0, static_cast<std::uint32_t>(special)});
  }
  return object;
}

bool Solver::Moves(const Form& form, std::size_t source) {
  switch (form.rules.operation) {
    case Operation::kCopy:
    case Operation::kChangeSpace:
    case Operation::kConvert:
    case Operation::kSum:
    case Operation::kPeerAddress:
      return true;
    case Operation::kDifference:
      return source == 0;
    case Operation::kSelect:
      return source < 2;
    case Operation::kMultiplyAdd:
      return source == 2;
    default:
      break;
  }
  switch (form.rules.shadow) {
    case ptx::Shadow::kStore:
    case ptx::Shadow::kAtomic:
      return true;
    case ptx::Shadow::kShuffle:
      return source == 0;
    default:
      return false;
  }
}

void Solver::Read(const Operand& operand, Step& step, bool moves) {
  switch (operand.kind) {
    case Operand::Kind::kRegister:
      (moves ? step.moves : step.reads).push_back(RegisterCell(step.function, operand.reg));
      break;
    case Operand::Kind::kSymbol:
      step.constants.push_back(ObjectOf(step.function, operand.symbol));
      break;
    case Operand::Kind::kSpecial:
      step.constants.push_back(Special(operand.special));
      break;
    case Operand::Kind::kFunction:
      functions_have_addresses_ = true;
      break;
    case Operand::Kind::kAddress:
    case Operand::Kind::kTensor:
      if (operand.has_base_register)
        (moves ? step.moves : step.reads).push_back(RegisterCell(step.function, operand.reg));
      if (operand.has_symbol) step.constants.push_back(ObjectOf(step.function, operand.symbol));
      break;
    default:
      break;
  }
  for (const Operand& element : operand.elements) Read(element, step, moves);
}

void Solver::Write(const Operand& operand, Step& step) {
  if (operand.kind == Operand::Kind::kRegister)
    step.writes.push_back(RegisterCell(step.function, operand.reg));
  for (const Operand& element : operand.elements) Write(element, step);
}

void Solver::Prepare() {
  for (std::uint32_t f = 0; f < module_.functions.size(); ++f) {
    const ptx::Function& function = module_.functions[f];
    for (std::uint32_t i = 0; i < function.body.size(); ++i) {
      const Instruction& in = function.body[i];
      Step step;
      step.function = f;
      step.index = i;
      const Form& form = ptx::FormOf(in);
      step.roles = ptx::MemoryRoles(in);
      step.decides = ptx::Leaves(form.rules.effect);
      step.call = form.rules.effect == ptx::Effect::kCall;
      if (in.guard.present) step.reads.push_back(RegisterCell(f, in.guard.predicate));
      if (step.call) {
        PrepareCall(in, step);
      } else {
        const ptx::OperandRules rules = ptx::RulesOf(in);
        const std::size_t results = rules.written();
        for (std::size_t o = 0; o < rules.size(); ++o) {
          // What stands in brackets says where; only values are handed on.
          const bool address = std::ranges::any_of(
              step.roles, [o](const ptx::MemoryRole& role) { return role.operand == o; });
          if (rules[o].written) Write(in.operands[o], step);
          if (rules[o].read && !address)
            Read(in.operands[o], step, o >= results && Moves(form, o - results));
        }
      }
      if (form.rules.effect == ptx::Effect::kCarry) step.reads.push_back(CarryCell(f));
      if (in.Has(ptx::Mod::kCc)) step.writes.push_back(CarryCell(f));
      steps_.push_back(std::move(step));
    }
  }
}

void Solver::PrepareCall(const Instruction& in, Step& step) {
  const Operand& callee = in.operands[1];
  const bool known = callee.kind == Operand::Kind::kFunction &&
                     module_.functions[Resolve(callee.function)].has_body;
  if (known) return;
  if (callee.kind == Operand::Kind::kRegister) Read(callee, step, true);
  for (std::size_t i = 2; i < in.operands.size(); ++i) Read(in.operands[i], step, true);
  Write(in.operands[0], step);
  Place& place = out_.unknown_code_;
  if (!place.yes) place = {true, step.function, step.index};
}

}  // namespace assay::facts
