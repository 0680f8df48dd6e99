#include "validator/ptx/facts/origin_solver.h"

namespace assay::facts {

using ptx::Instruction;
using ptx::Operand;
using ptx::Space;

void Solver::Run() {
  Allocate();
  Prepare();
  Start();
  // What compilers write is almost in the order of its flow.
  constexpr int kMostRounds = 48;
  int round = 0;
  do {
    grew_ = false;
    for (const Step& step : steps_) Apply(step);
    CloseEscapes();
  } while (grew_ && ++round < kMostRounds);
  if (grew_) GiveUp();
}

void Solver::Start() {
  out_.contents_.resize(out_.objects_.size());
  out_.escaped_.resize(out_.objects_.size());
  ObjectIndex parameter = first_parameter_;
  for (std::uint32_t f = 0; f < module_.functions.size(); ++f) {
    const ptx::Function& function = module_.functions[f];
    if (function.is_entry) {
      for (std::uint32_t i = 0; i < function.params.size(); ++i, ++parameter) {
        const auto variable = static_cast<std::uint32_t>(function.returns.size()) + i;
        // What is only declared has no variables.
        if (variable < function.variables.size())
          out_.contents_[out_.first_variable_[f] + variable].Add(parameter);
      }
    }
  }
  for (std::uint32_t i = 0; i < module_.variables.size(); ++i) {
    for (const ptx::Relocation& relocation : module_.variables[i].relocations) {
      if (relocation.to_function) {
        functions_have_addresses_ = true;
      } else {
        out_.contents_[out_.first_module_variable_ + i].Add(out_.first_module_variable_ +
                                                            relocation.index);
      }
    }
  }
  if (functions_have_addresses_) AnyoneMayCall();
}

void Solver::AnyoneMayCall() {
  for (std::uint32_t f = 0; f < module_.functions.size(); ++f) {
    const ptx::Function& function = module_.functions[f];
    if (function.is_entry) continue;
    const std::size_t passed = std::min(function.returns.size() + function.params.size(),
                                        function.variables.size());  // 0: only declared
    for (std::uint32_t i = 0; i < passed; ++i) {
      Put(out_.contents_[out_.first_variable_[f] + i], Origins::kMemory);
      SetEscaped(out_.first_variable_[f] + i, {true, f, 0});
      if (i < function.registers.size()) Put(out_.cells_[RegisterCell(f, i)], Origins::kMemory);
    }
  }
}

void Solver::SetEscaped(ObjectIndex object, const Place& place) {
  if (out_.escaped_[object].yes) return;
  out_.escaped_[object] = place;
  grew_ = true;
}

void Solver::Escape(const OriginSet& values, const Step& step) {
  const Place place{true, step.function, step.index};
  if (values.everything()) {
    for (ObjectIndex i = 0; i < out_.objects_.size(); ++i) {
      if (IsVariable(i)) SetEscaped(i, place);
    }
    return;
  }
  for (const Origin& origin : values.origins()) {
    if (IsVariable(origin.object)) SetEscaped(origin.object, place);
  }
}

void Solver::CloseEscapes() {
  for (ObjectIndex i = 0; i < out_.objects_.size(); ++i) {
    if (!out_.escaped_[i].yes || !IsVariable(i)) continue;
    Put(out_.contents_[i], Origins::kMemory);
    const OriginSet contents = out_.contents_[i];
    const Place place = out_.escaped_[i];
    if (contents.everything()) {
      for (ObjectIndex j = 0; j < out_.objects_.size(); ++j) {
        if (IsVariable(j)) SetEscaped(j, place);
      }
    }
    for (const Origin& origin : contents.origins()) {
      if (IsVariable(origin.object)) SetEscaped(origin.object, place);
    }
  }
}

bool Solver::IsFollowed(ObjectIndex object) const {
  const Object& what = out_.objects_[object];
  if (what.kind != Object::Kind::kFunctionVariable) return false;
  const Space space = module_.functions[what.function].variables[what.index].space;
  return space != Space::kShared && space != Space::kSharedCta && space != Space::kSharedCluster &&
         space != Space::kGlobal;
}

void Solver::Store(const OriginSet& address, const OriginSet& values, Space space,
                   const Step& step) {
  if (address.everything()) return Escape(values, step);
  bool followed = !IsUnknownAddress(address, out_);
  for (const auto& [object, derived] : address.origins()) {
    // Where it is stored tells something of the address that this was derived from.
    if (derived && IsVariable(object)) SetEscaped(object, {true, step.function, step.index});
    if (IsVariable(object)) Put(out_.contents_[object], values);
    if (out_.objects_[object].kind == Object::Kind::kEntryParameter ||
        (IsVariable(object) && !IsFollowed(object)))
      followed = false;
  }
  if (!followed) Escape(values, step);
  if (space == Space::kLocal && IsUnknownAddress(address, out_)) OpenLocalMemory(step);
}

OriginSet Solver::Load(const OriginSet& address, Space space, const Step& step) {
  OriginSet loaded;
  if (address.everything()) loaded.Add(Origins::kMemory);
  if (IsUnknownAddress(address, out_)) {
    loaded.Add(Origins::kMemory);
    if (space == Space::kLocal) OpenLocalMemory(step);
  }
  for (const auto& [object, derived] : address.origins()) {
    // A table of 0 and 1 gives back the bit that it is asked with.
    if (derived) loaded.Add(Origin{object, true});
    if (IsVariable(object)) {
      loaded.Add(out_.contents_[object]);
    } else if (out_.objects_[object].kind == Object::Kind::kEntryParameter) {
      loaded.Add(Origins::kMemory);
    }
  }
  return loaded;
}

void Solver::OpenLocalMemory(const Step& step) {
  for (ObjectIndex i = 0; i < out_.objects_.size(); ++i) {
    if (IsVariable(i) && IsFollowed(i)) SetEscaped(i, {true, step.function, step.index});
  }
}

void Solver::Apply(const Step& step) {
  OriginSet values;
  for (const Origins::Cell cell : step.moves) values.Add(out_.cells_[cell]);
  for (const Origins::Cell cell : step.reads) values.Add(out_.cells_[cell], true);
  for (const ObjectIndex object : step.constants) values.Add(object);
  if (step.decides) Escape(values, step);
  if (step.call) return ApplyCall(step, values);
  OriginSet results = values;
  OriginSet moved;  // from memory to memory
  for (const ptx::MemoryRole& role : step.roles) {
    if (!role.reads) continue;
    const OriginSet loaded = Load(AddressOf(step, role), role.space, step);
    results.Add(loaded);
    moved.Add(loaded);
  }
  for (const ptx::MemoryRole& role : step.roles) {
    if (!role.writes) continue;
    moved.Add(values);
    Store(AddressOf(step, role), moved, role.space, step);
  }
  for (const Origins::Cell cell : step.writes) Put(out_.cells_[cell], results);
}

OriginSet Solver::AddressOf(const Step& step, const ptx::MemoryRole& role) const {
  const Operand& operand = InstructionOf(step).operands[role.operand];
  OriginSet origins = out_.Of(step.function, operand);
  // Through a tensor map, which says itself where it points.
  if (operand.kind == Operand::Kind::kTensor && role.space != Space::kShared &&
      role.space != Space::kSharedCta && role.space != Space::kSharedCluster)
    origins.Add(Origins::kMemory);
  return origins;
}

void Solver::ApplyCall(const Step& step, const OriginSet& values) {
  const Instruction& in = InstructionOf(step);
  const Operand& callee = in.operands[1];
  const std::uint32_t target =
      callee.kind == Operand::Kind::kFunction ? Resolve(callee.function) : 0;
  if (callee.kind != Operand::Kind::kFunction || !module_.functions[target].has_body) {
    Escape(values, step);
    for (const Origins::Cell cell : step.writes) Put(out_.cells_[cell], Origins::kMemory);
    // Arguments and results may be variables; those are the callee's to read and to write.
    for (std::size_t i = 0; i < in.operands.size(); ++i) {
      for (const Operand& element : in.operands[i].elements) {
        if (element.kind == Operand::Kind::kSymbol)
          SetEscaped(ObjectOf(step.function, element.symbol), {true, step.function, step.index});
      }
    }
    return;
  }
  const ptx::Function& function = module_.functions[target];
  const auto bind = [&](const std::vector<Operand>& passed, std::size_t first, bool in_order) {
    for (std::size_t i = 0; i < passed.size(); ++i) {
      const auto variable = static_cast<std::uint32_t>(first + i);
      if (variable >= function.variables.size()) continue;
      // A parameter in a register has the register of the same position.
      const bool in_register = function.variables[variable].space == Space::kReg;
      OriginSet& far = in_register
                           ? out_.cells_[RegisterCell(target, RegisterOf(function, variable))]
                           : out_.contents_[out_.first_variable_[target] + variable];
      if (in_order) {
        Put(far, Passed(step, passed[i]));
      } else if (passed[i].kind == Operand::Kind::kSymbol) {
        Put(out_.contents_[ObjectOf(step.function, passed[i].symbol)], far);
      } else if (passed[i].kind == Operand::Kind::kRegister) {
        Put(out_.cells_[RegisterCell(step.function, passed[i].reg)], far);
      }
    }
  };
  bind(in.operands[2].elements, function.returns.size(), true);
  bind(in.operands[0].elements, 0, false);
}

ptx::RegisterIndex Solver::RegisterOf(const ptx::Function& function, std::uint32_t variable) {
  ptx::RegisterIndex reg = 0;
  for (std::uint32_t i = 0; i < variable; ++i) {
    if (function.variables[i].space == Space::kReg) ++reg;
  }
  return reg;
}

OriginSet Solver::Passed(const Step& step, const Operand& operand) const {
  if (operand.kind == Operand::Kind::kSymbol)
    return out_.contents_[ObjectOf(step.function, operand.symbol)];
  return out_.Of(step.function, operand);
}

void Solver::GiveUp() {
  out_.given_up_ = true;
  for (OriginSet& set : out_.cells_) set.AddEverything();
  for (OriginSet& set : out_.contents_) set.AddEverything();
  for (Place& place : out_.escaped_) place.yes = true;
}

}  // namespace assay::facts
