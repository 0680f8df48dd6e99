#include "validator/ptx/facts/origins.h"

#include <algorithm>
#include <array>

#include "validator/ptx/isa.h"

namespace assay::facts {

using ptx::Instruction;
using ptx::Opcode;
using ptx::Operand;
using ptx::Space;
using ptx::SymbolRef;

namespace {

/// What a row of the table says of the addresses of an opcode, in order; the last one repeats.
struct RoleRow {
  Opcode opcode;
  std::string_view roles;  ///< r reads, w writes, b both, - neither.
};
constexpr std::array kRoles = {
    RoleRow{Opcode::kLd, "r"},
    RoleRow{Opcode::kLdu, "r"},
    RoleRow{Opcode::kSt, "w"},
    RoleRow{Opcode::kStAsync, "wb"},
    RoleRow{Opcode::kStBulk, "w"},
    RoleRow{Opcode::kCpAsync, "wr"},
    RoleRow{Opcode::kCpAsyncBulk, "wrb"},
    RoleRow{Opcode::kCpAsyncBulkTensor, "wrb"},
    RoleRow{Opcode::kCpReduceAsyncBulk, "brb"},
    RoleRow{Opcode::kCpReduceAsyncBulkTensor, "br"},
    RoleRow{Opcode::kTensormapReplace, "w"},
    RoleRow{Opcode::kTensormapCpFenceproxy, "wr"},
    RoleRow{Opcode::kLdmatrix, "r"},
    RoleRow{Opcode::kStmatrix, "w"},
    RoleRow{Opcode::kWmmaLoad, "r"},
    RoleRow{Opcode::kWmmaStore, "w"},
    RoleRow{Opcode::kMbarrierTestWait, "r"},
    RoleRow{Opcode::kMbarrierTryWait, "r"},
    RoleRow{Opcode::kDiscard, "w"},
    RoleRow{Opcode::kPrefetch, "-"},
    RoleRow{Opcode::kPrefetchu, "-"},
    RoleRow{Opcode::kApplyPriority, "-"},
    RoleRow{Opcode::kCpAsyncBulkPrefetch, "-"},
    RoleRow{Opcode::kCpAsyncBulkPrefetchTensor, "-"},
    RoleRow{Opcode::kFence, "-"},
    RoleRow{Opcode::kCreatePolicy, "-"},
    RoleRow{Opcode::kIsspacep, "-"},
};

bool IsAddress(const Operand& operand) {
  return operand.kind == Operand::Kind::kAddress || operand.kind == Operand::Kind::kTensor;
}

}  // namespace

std::vector<AddressRole> AddressRoles(const Instruction& in) {
  std::vector<AddressRole> roles;
  const auto row = std::ranges::find(kRoles, in.opcode, &RoleRow::opcode);
  const std::string_view letters = row == kRoles.end() ? "b" : row->roles;
  std::size_t number = 0;
  for (std::size_t i = 0; i < in.operands.size(); ++i) {
    if (!IsAddress(in.operands[i])) continue;
    const char letter = letters[std::min(number, letters.size() - 1)];
    // The spaces are those of destination and source; what follows is an mbarrier.
    const Space space = number == 0                                   ? in.space
                        : number == 1 && in.space2 != Space::kGeneric ? in.space2
                        : in.opcode == Opcode::kStAsync || number > 1 ? Space::kShared
                                                                      : in.space2;
    ++number;
    if (letter == '-') continue;
    roles.push_back({i, space, letter != 'w', letter != 'r'});
  }
  return roles;
}

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

/// Grows the sets of a solution until they are closed.
class Solver {
 public:
  explicit Solver(Origins& out) : out_(out), module_(out.module_) {}

  void Run() {
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

 private:
  using Place = Origins::Place;

  /// One instruction as the analysis sees it.
  struct Step {
    std::uint32_t function = 0;
    ptx::InstructionIndex index = 0;
    std::vector<Origins::Cell> moves;  ///< What is read and stays what it is.
    std::vector<Origins::Cell> reads;  ///< What is read and computed with.
    std::vector<Origins::Cell> writes;
    std::vector<ObjectIndex> constants;  ///< Objects that occur as values.
    std::vector<AddressRole> roles;
    bool decides = false;  ///< A branch: what it reads is seen by what follows.
    bool call = false;
  };

  const ptx::Function& FunctionOf(const Step& step) const {
    return module_.functions[step.function];
  }
  const Instruction& InstructionOf(const Step& step) const {
    return FunctionOf(step).body[step.index];
  }
  Origins::Cell RegisterCell(std::uint32_t function, ptx::RegisterIndex reg) const {
    return out_.first_register_[function] + reg;
  }
  /// Carries chain additions out of sight of the registers.
  Origins::Cell CarryCell(std::uint32_t function) const {
    return out_.first_register_[function] +
           static_cast<Origins::Cell>(module_.functions[function].registers.size());
  }
  ObjectIndex ObjectOf(std::uint32_t function, const SymbolRef& symbol) const {
    return symbol.scope == SymbolRef::Scope::kModule
               ? out_.first_module_variable_ + symbol.index
               : out_.first_variable_[function] + symbol.index;
  }

  void Allocate() {
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

  ObjectIndex Special(ptx::SpecialRegister special) {
    ObjectIndex& object = out_.special_[static_cast<std::size_t>(special)];
    if (object == 0) {
      object = static_cast<ObjectIndex>(out_.objects_.size());
      out_.objects_.push_back(
          {Object::Kind::kSpecialRegister, 0, static_cast<std::uint32_t>(special)});
    }
    return object;
  }

  /// Does the value of operand `index` stay what it is, but for an offset?
  static bool Moves(const Instruction& in, std::size_t index) {
    switch (in.opcode) {
      case Opcode::kMov:
      case Opcode::kCvta:
      case Opcode::kCvt:
      case Opcode::kAdd:
      case Opcode::kMapa:
      case Opcode::kSt:
      case Opcode::kAtom:
        return true;
      case Opcode::kShfl:
      case Opcode::kSub:
        return index == 1 || (in.opcode == Opcode::kShfl && index == 2 && in.operands[1].paired);
      case Opcode::kSelp:
        return index == 1 || index == 2;
      case Opcode::kMad:
        return index == 3;
      default:
        return false;
    }
  }

  /// Everything below an operand that is a value.
  void Read(const Operand& operand, Step& step, bool moves) {
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

  void Write(const Operand& operand, Step& step) {
    if (operand.kind == Operand::Kind::kRegister)
      step.writes.push_back(RegisterCell(step.function, operand.reg));
    for (const Operand& element : operand.elements) Write(element, step);
  }

  void Prepare() {
    for (std::uint32_t f = 0; f < module_.functions.size(); ++f) {
      const ptx::Function& function = module_.functions[f];
      for (std::uint32_t i = 0; i < function.body.size(); ++i) {
        const Instruction& in = function.body[i];
        Step step;
        step.function = f;
        step.index = i;
        step.roles = AddressRoles(in);
        step.decides = in.opcode == Opcode::kBra || in.opcode == Opcode::kBrx ||
                       in.opcode == Opcode::kExit || in.opcode == Opcode::kRet ||
                       in.opcode == Opcode::kTrap;
        step.call = in.opcode == Opcode::kCall;
        if (in.guard.present) step.reads.push_back(RegisterCell(f, in.guard.predicate));
        if (step.call) {
          PrepareCall(in, step);
        } else {
          const auto rules = ptx::AssignRules(ptx::FormOf(in), in);
          for (std::size_t o = 0; o < in.operands.size(); ++o) {
            const bool written = o < rules.size() && rules[o]->written;
            const bool read = o >= rules.size() || rules[o]->read || !rules[o]->written;
            // What stands in brackets says where; only values are handed on.
            const bool address = std::ranges::any_of(
                step.roles, [o](const AddressRole& role) { return role.operand == o; });
            if (written) Write(in.operands[o], step);
            if (read && !address) Read(in.operands[o], step, Moves(in, o));
          }
        }
        if (in.opcode == Opcode::kAddc || in.opcode == Opcode::kSubc || in.opcode == Opcode::kMadc)
          step.reads.push_back(CarryCell(f));
        if (in.Has(ptx::Mod::kCc)) step.writes.push_back(CarryCell(f));
        steps_.push_back(std::move(step));
      }
    }
  }

  // Operands of a call: results, callee, arguments, perhaps a prototype. Values of registers are
  // bound in ApplyCall; an unknown callee sees them all.
  void PrepareCall(const Instruction& in, Step& step) {
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

  std::uint32_t Resolve(std::uint32_t function) const {
    const std::int32_t alias = module_.functions[function].alias_of;
    return alias >= 0 ? static_cast<std::uint32_t>(alias) : function;
  }

  void Start() {
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

  /// A function whose address is known may be called with anything, by anyone.
  void AnyoneMayCall() {
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

  bool Put(OriginSet& set, ObjectIndex object) {
    const bool grew = set.Add(object);
    grew_ = grew_ || grew;
    return grew;
  }
  bool Put(OriginSet& set, const OriginSet& other) {
    const bool grew = set.Add(other);
    grew_ = grew_ || grew;
    return grew;
  }

  bool IsVariable(ObjectIndex object) const {
    const Object::Kind kind = out_.objects_[object].kind;
    return kind == Object::Kind::kModuleVariable || kind == Object::Kind::kFunctionVariable;
  }

  void SetEscaped(ObjectIndex object, const Place& place) {
    if (out_.escaped_[object].yes) return;
    out_.escaped_[object] = place;
    grew_ = true;
  }

  void Escape(const OriginSet& values, const Step& step) {
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

  /// What is stored where anyone looks is everyone's, and may be changed by anyone.
  void CloseEscapes() {
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

  /// Only the thread's own variables and what is passed to functions are followed as memory.
  bool IsFollowed(ObjectIndex object) const {
    const Object& what = out_.objects_[object];
    if (what.kind != Object::Kind::kFunctionVariable) return false;
    const Space space = module_.functions[what.function].variables[what.index].space;
    return space != Space::kShared && space != Space::kSharedCta &&
           space != Space::kSharedCluster && space != Space::kGlobal;
  }

  void Store(const OriginSet& address, const OriginSet& values, Space space, const Step& step) {
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

  OriginSet Load(const OriginSet& address, Space space, const Step& step) {
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

  /// Local memory is a small window that starts at 0: its addresses can be written as numbers.
  void OpenLocalMemory(const Step& step) {
    for (ObjectIndex i = 0; i < out_.objects_.size(); ++i) {
      if (IsVariable(i) && IsFollowed(i)) SetEscaped(i, {true, step.function, step.index});
    }
  }

  void Apply(const Step& step) {
    OriginSet values;
    for (const Origins::Cell cell : step.moves) values.Add(out_.cells_[cell]);
    for (const Origins::Cell cell : step.reads) values.Add(out_.cells_[cell], true);
    for (const ObjectIndex object : step.constants) values.Add(object);
    if (step.decides) Escape(values, step);
    if (step.call) return ApplyCall(step, values);
    OriginSet results = values;
    OriginSet moved;  // from memory to memory
    for (const AddressRole& role : step.roles) {
      if (!role.reads) continue;
      const OriginSet loaded = Load(AddressOf(step, role), role.space, step);
      results.Add(loaded);
      moved.Add(loaded);
    }
    for (const AddressRole& role : step.roles) {
      if (!role.writes) continue;
      moved.Add(values);
      Store(AddressOf(step, role), moved, role.space, step);
    }
    for (const Origins::Cell cell : step.writes) Put(out_.cells_[cell], results);
  }

  OriginSet AddressOf(const Step& step, const AddressRole& role) const {
    const Operand& operand = InstructionOf(step).operands[role.operand];
    OriginSet origins = out_.Of(step.function, operand);
    // Through a tensor map, which says itself where it points.
    if (operand.kind == Operand::Kind::kTensor && role.space != Space::kShared &&
        role.space != Space::kSharedCta && role.space != Space::kSharedCluster)
      origins.Add(Origins::kMemory);
    return origins;
  }

  void ApplyCall(const Step& step, const OriginSet& values) {
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

  /// Registers of returns and parameters open the list, in the order of those that are registers.
  static ptx::RegisterIndex RegisterOf(const ptx::Function& function, std::uint32_t variable) {
    ptx::RegisterIndex reg = 0;
    for (std::uint32_t i = 0; i < variable; ++i) {
      if (function.variables[i].space == Space::kReg) ++reg;
    }
    return reg;
  }

  OriginSet Passed(const Step& step, const Operand& operand) const {
    if (operand.kind == Operand::Kind::kSymbol)
      return out_.contents_[ObjectOf(step.function, operand.symbol)];
    return out_.Of(step.function, operand);
  }

  void GiveUp() {
    out_.given_up_ = true;
    for (OriginSet& set : out_.cells_) set.AddEverything();
    for (OriginSet& set : out_.contents_) set.AddEverything();
    for (Place& place : out_.escaped_) place.yes = true;
  }

  Origins& out_;
  const ptx::Module& module_;
  std::vector<Step> steps_;
  ObjectIndex first_parameter_ = 0;
  bool functions_have_addresses_ = false;
  bool grew_ = false;
};

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
