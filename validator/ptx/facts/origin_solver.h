// Grows the sets of an Origins until they are closed; internal to this folder.
//
// Each instruction becomes a Step, once: which registers it reads, writes and hands on, and which
// memory it accesses (origin_steps.cc, off the instruction's row). Steps are then applied, again and
// again, until no set grows (origin_solver.cc).
#pragma once

#include <cstdint>
#include <vector>

#include "validator/ptx/facts/origins.h"
#include "validator/ptx/isa.h"

namespace assay::facts {

class Solver {
 public:
  explicit Solver(Origins& out) : out_(out), module_(out.module_) {}
  void Run();

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
    std::vector<ptx::MemoryRole> roles;
    bool decides = false;  ///< A branch: what it reads is seen by what follows.
    bool call = false;
  };

  const ptx::Function& FunctionOf(const Step& step) const {
    return module_.functions[step.function];
  }
  const ptx::Instruction& InstructionOf(const Step& step) const {
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
  ObjectIndex ObjectOf(std::uint32_t function, const ptx::SymbolRef& symbol) const {
    return symbol.scope == ptx::SymbolRef::Scope::kModule
               ? out_.first_module_variable_ + symbol.index
               : out_.first_variable_[function] + symbol.index;
  }
  void Allocate();
  ObjectIndex Special(ptx::SpecialRegister special);
  /// Does the value of source `source` stay what it is, but for an offset?
  static bool Moves(const ptx::Form& form, std::size_t source);
  /// Everything below an operand that is a value.
  void Read(const ptx::Operand& operand, Step& step, bool moves);
  void Write(const ptx::Operand& operand, Step& step);
  void Prepare();
  // Operands of a call: results, callee, arguments, perhaps a prototype. Values of registers are
  // bound in ApplyCall; an unknown callee sees them all.
  void PrepareCall(const ptx::Instruction& in, Step& step);
  std::uint32_t Resolve(std::uint32_t function) const {
    const std::int32_t alias = module_.functions[function].alias_of;
    return alias >= 0 ? static_cast<std::uint32_t>(alias) : function;
  }
  void Start();
  /// A function whose address is known may be called with anything, by anyone.
  void AnyoneMayCall();
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
  void SetEscaped(ObjectIndex object, const Place& place);
  void Escape(const OriginSet& values, const Step& step);
  /// What is stored where anyone looks is everyone's, and may be changed by anyone.
  void CloseEscapes();
  /// Only the thread's own variables and what is passed to functions are followed as memory.
  bool IsFollowed(ObjectIndex object) const;
  void Store(const OriginSet& address, const OriginSet& values, ptx::Space space, const Step& step);
  OriginSet Load(const OriginSet& address, ptx::Space space, const Step& step);
  /// Local memory is a small window that starts at 0: its addresses can be written as numbers.
  void OpenLocalMemory(const Step& step);
  void Apply(const Step& step);
  OriginSet AddressOf(const Step& step, const ptx::MemoryRole& role) const;
  void ApplyCall(const Step& step, const OriginSet& values);
  /// Registers of returns and parameters open the list, in the order of those that are registers.
  static ptx::RegisterIndex RegisterOf(const ptx::Function& function, std::uint32_t variable);
  OriginSet Passed(const Step& step, const ptx::Operand& operand) const;
  void GiveUp();

  Origins& out_;
  const ptx::Module& module_;
  std::vector<Step> steps_;
  ObjectIndex first_parameter_ = 0;
  bool functions_have_addresses_ = false;
  bool grew_ = false;
};

}  // namespace assay::facts
