#include "validator/ptx/facts/skeleton.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "validator/ptx/facts/control.h"
#include "validator/ptx/facts/flow.h"
#include "validator/ptx/facts/origins.h"
#include "validator/ptx/isa.h"
#include "validator/ptx/printer.h"

namespace assay::facts {
namespace {

using ptx::Effect;
using ptx::Instruction;
using ptx::MemoryRole;
using ptx::Operand;
using ptx::Space;

bool IsShared(Space space) {
  return space == Space::kShared || space == Space::kSharedCta || space == Space::kSharedCluster;
}
bool IsParameter(Space space) {
  return space == Space::kParam || space == Space::kParamEntry || space == Space::kParamFunc;
}

template <class Use>
void ForEachRegister(const Operand& operand, const Use& use) {
  if (operand.kind == Operand::Kind::kRegister || operand.has_base_register) use(operand.reg);
  for (const Operand& element : operand.elements) ForEachRegister(element, use);
}

std::uint64_t BytesOf(const Instruction& in) {
  return in.types.empty() ? 0
                          : std::uint64_t{in.vector_width} *
                                static_cast<std::uint64_t>(ptx::BitsOf(in.types.back())) / 8;
}

/// Is operand `o` what an instruction stores, or adds, rather than what says where?
bool IsStored(const Instruction& in, std::size_t o, const ptx::OperandRule& rule) {
  const Operand::Kind kind = in.operands[o].kind;
  if (kind == Operand::Kind::kAddress || kind == Operand::Kind::kTensor) return false;
  if (in.opcode == ptx::Opcode::kWmmaStore) return kind == Operand::Kind::kVector;
  constexpr std::array kStores = {ptx::Opcode::kSt, ptx::Opcode::kRed, ptx::Opcode::kAtom};
  return std::ranges::find(kStores, in.opcode) != kStores.end() && !rule.written &&
         rule.gate.empty();
}

/// Does it copy out of memory of the block, some time?
bool CopiesOut(const Instruction& in) {
  return ptx::FamilyOf(in.opcode) == ptx::Family::kAsyncCopy &&
         std::ranges::any_of(ptx::MemoryRoles(in), [](const MemoryRole& role) {
           return role.writes && !IsShared(role.space);
         });
}

/// Does a register hold one number, whoever reads it?
bool IsConstant(const ptx::Function& function, ptx::RegisterIndex reg) {
  const auto defines = [&](const Instruction& in) {
    return !in.operands.empty() && ptx::RulesOf(in).written() > 0 &&
           in.operands.front().kind == Operand::Kind::kRegister && in.operands.front().reg == reg;
  };
  return std::ranges::all_of(function.body, [&](const Instruction& in) {
    return !defines(in) || (in.opcode == ptx::Opcode::kMov && in.operands.size() == 2 &&
                            in.operands[1].kind == Operand::Kind::kImmediate);
  });
}

/// A quotient by a constant is the high half of a product with one, and exact.
bool RoundsSomething(const ptx::Function& function) {
  return std::ranges::any_of(function.body, [&](const Instruction& in) {
    if (in.opcode == ptx::Opcode::kCvt && in.types.size() == 2)
      return ptx::IsInteger(in.types[0]) && !ptx::IsInteger(in.types[1]);
    const bool high = in.opcode == ptx::Opcode::kMul && in.Has(ptx::Mod::kHi);
    return high && std::ranges::all_of(in.operands, [&](const Operand& operand) {
             return operand.kind == Operand::Kind::kRegister && !IsConstant(function, operand.reg);
           });
  });
}

template <class Use>
void ForEachSymbol(const Operand& operand, const Use& use) {
  if (operand.kind == Operand::Kind::kSymbol || operand.has_symbol) use(operand.symbol);
  for (const Operand& element : operand.elements) ForEachSymbol(element, use);
}

/// Does a program come to shared memory, or name some?
bool ComesToShared(const ptx::Module& module) {
  return std::ranges::any_of(module.functions, [&](const ptx::Function& function) {
    bool names = false;
    const auto note = [&](const ptx::SymbolRef& symbol) {
      const auto& variables =
          symbol.scope == ptx::SymbolRef::Scope::kModule ? module.variables : function.variables;
      names = names || IsShared(variables[symbol.index].space);
    };
    return std::ranges::any_of(function.body, [&](const Instruction& in) {
      for (const Operand& operand : in.operands) ForEachSymbol(operand, note);
      return names || IsShared(in.space) ||
             std::ranges::any_of(ptx::MemoryRoles(in), [](const MemoryRole& role) {
               return IsShared(role.space) || role.mbarrier;
             });
    });
  });
}

/// Leaves next to nothing of shared memory that nobody comes to: each block would have to find it as blocks do.
void ShrinkShared(ptx::Module& module) {
  const auto shrink = [](ptx::Variable& variable) {
    if (!IsShared(variable.space) || variable.bytes == 0) return;
    variable.type = ptx::Type::kB8;
    variable.bytes = variable.align = 1;
  };
  std::ranges::for_each(module.variables, shrink);
  for (ptx::Function& function : module.functions)
    std::ranges::for_each(function.variables, shrink);
}

/// Memory of one kind, from which addresses or branches come.
class Wanted {
 public:
  bool any() const { return everything_ || !objects_.empty(); }
  /// `objects`: empty, where it is not known which.
  bool Add(const std::vector<ObjectIndex>& objects) {
    if (everything_) return false;
    const std::size_t before = objects_.size();
    everything_ = objects.empty();
    objects_.insert(objects.begin(), objects.end());
    return everything_ || objects_.size() > before;
  }
  bool Has(const std::vector<ObjectIndex>& objects) const {
    if (everything_) return true;
    return objects.empty() ? any() : std::ranges::any_of(objects, [&](ObjectIndex object) {
      return objects_.contains(object);
    });
  }

 private:
  std::set<ObjectIndex> objects_;
  bool everything_ = false;
};

/// So many bytes that a program reads at once from global memory, to decide something.
struct ReadToDecide {
  std::uint32_t program = 0;
  std::uint64_t bytes = 0;
  bool is_whole_number = false;  ///< By its type; words of bits may be anything.
  auto operator<=>(const ReadToDecide&) const = default;
};

/// Does an instruction read a number that has a sign or none, rather than bits?
bool IsWholeNumber(const Instruction& in) {
  return !in.types.empty() && in.types.back() >= ptx::Type::kU8 &&
         in.types.back() <= ptx::Type::kS64;
}

struct FunctionSlice {
  Control control;
  std::vector<std::vector<std::uint32_t>> defined_by;  ///< By register.
  std::vector<bool> kept;                              ///< By instruction.
  std::vector<bool> needed;                            ///< By register.
  bool calls = false;
  bool copies_out = false;
  bool left_out = false;
};

class Slicer {
 public:
  explicit Slicer(const ptx::Module& module) : module_(module), origins_(module) {}

  std::optional<ptx::Module> Run() {
    for (const ptx::Function& function : module_.functions) {
      FunctionSlice& slice = slices_.emplace_back();
      if (!function.has_body) continue;
      auto control = ControlOf(function);
      if (!control) return std::nullopt;
      slice.control = *std::move(control);
      slice.kept.assign(function.body.size(), false);
      slice.needed.assign(function.registers.size(), false);
      slice.defined_by.resize(function.registers.size());
      for (std::uint32_t i = 0; i < function.body.size(); ++i) {
        const Instruction& in = function.body[i];
        const Effect effect = ptx::FormOf(in).rules.effect;
        if (effect == Effect::kStack ||
            ptx::FormOf(in).rules.operation == ptx::Operation::kPeerAddress)
          slice.left_out = true;
        slice.calls = slice.calls || effect == Effect::kCall;
        slice.copies_out = slice.copies_out || CopiesOut(in);
        const std::size_t written = effect == Effect::kCall ? 1 : ptx::RulesOf(in).written();
        for (std::size_t o = 0; o < std::min(written, in.operands.size()); ++o)
          ForEachRegister(in.operands[o],
                          [&](ptx::RegisterIndex reg) { slice.defined_by[reg].push_back(i); });
      }
      // What others call may be anywhere.
      if (slice.left_out && !function.is_entry) return std::nullopt;
      if (slice.left_out) without_.push_back(function.name);
    }
    // What is wanted of memory grows by what is kept, and the other way round.
    for (grew_ = true; grew_;) {
      grew_ = false;
      for (std::uint32_t f = 0; f < module_.functions.size(); ++f) {
        if (slices_[f].left_out) continue;
        for (std::uint32_t i = 0; i < slices_[f].kept.size(); ++i) Look(f, i);
      }
    }
    ptx::Module skeleton = module_;
    for (std::uint32_t f = 0; f < skeleton.functions.size(); ++f) {
      if (skeleton.functions[f].has_body && !Cut(slices_[f], skeleton, skeleton.functions[f]))
        return std::nullopt;
    }
    return skeleton;
  }

  /// Entries of which nothing is left.
  const std::vector<std::string>& without() const { return without_; }

 private:
  /// Variables that lie in memory of the block or thread, or parameters: what an address is of. Empty: not known.
  std::vector<ObjectIndex> ObjectsOf(std::uint32_t f, const Operand& operand) const {
    const OriginSet set = origins_.Of(f, operand);
    std::vector<ObjectIndex> objects;
    for (const Origin& origin : set.origins()) {
      const Object::Kind kind = origins_.object(origin.object).kind;
      const bool is_memory = kind == Object::Kind::kModuleVariable ||
                             kind == Object::Kind::kFunctionVariable ||
                             kind == Object::Kind::kEntryParameter;
      // What was computed from an address is an offset.
      if (is_memory && !origin.derived) objects.push_back(origin.object);
    }
    return objects;
  }

  /// Does another program than `f` read what may be this, as many bytes at once from global memory, to decide something? A
  /// float is not what was read as a whole number: counters lie beside sums of parts.
  bool IsReadElsewhere(std::uint32_t f, const Instruction& store) const {
    const bool is_float = std::ranges::any_of(store.types, IsFloat);
    return std::ranges::any_of(read_, [&](const ReadToDecide& read) {
      return read.program != f && read.bytes == BytesOf(store) &&
             !(is_float && read.is_whole_number);
    });
  }

  /// Keeps what an instruction is kept for by itself.
  void Look(std::uint32_t f, std::uint32_t i) {
    const Instruction& in = module_.functions[f].body[i];
    const ptx::Form& form = ptx::FormOf(in);
    const Effect effect = form.rules.effect;
    const bool blocks_meet =
        shared_.any() &&
        (effect == Effect::kBlock || effect == Effect::kPeers || effect == Effect::kGroup ||
         effect == Effect::kFence || (effect == Effect::kWarp && in.operands.size() < 2));
    const bool ends_copies = slices_[f].copies_out && effect == Effect::kGroup;
    if (effect == Effect::kCall || blocks_meet || ends_copies) Keep(f, i, /*with_values=*/true);
    for (const MemoryRole& role : ptx::MemoryRoles(in)) {
      if (role.mbarrier && shared_.any()) Keep(f, i, true);
      if (!role.writes) continue;
      const std::vector<ObjectIndex> objects = ObjectsOf(f, in.operands[role.operand]);
      if (IsParameter(role.space)) {
        if (slices_[f].calls) Keep(f, i, true);
      } else if (IsShared(role.space)) {
        if (shared_.Has(objects)) Keep(f, i, true);
      } else if (role.space == Space::kLocal) {
        if (local_.Has(objects)) Keep(f, i, true);
      } else {
        const bool adds_up = ptx::UpdatesMemory(form);
        const bool in_words = adds_up && !std::ranges::any_of(in.types, IsFloat);
        Keep(f, i,
             in_words || role.space == Space::kGeneric || global_.Has(objects) ||
                 IsReadElsewhere(f, in));
      }
    }
    if (slices_[f].kept[i]) NoteReads(f, i);
  }

  static bool IsFloat(ptx::Type type) { return !ptx::IsInteger(type) && type != ptx::Type::kB128; }

  bool HasNeededResult(std::uint32_t f, const Instruction& in) const {
    bool needed = false;
    for (std::size_t o = 0; o < ptx::RulesOf(in).written(); ++o)
      ForEachRegister(in.operands[o],
                      [&](ptx::RegisterIndex reg) { needed = needed || slices_[f].needed[reg]; });
    return needed;
  }

  /// What a kept instruction reads of memory is wanted.
  void NoteReads(std::uint32_t f, std::uint32_t i) {
    const Instruction& in = module_.functions[f].body[i];
    // What is copied or added is not asked for.
    if (CopiesOut(in) || (ptx::UpdatesMemory(ptx::FormOf(in)) && !HasNeededResult(f, in))) return;
    for (const MemoryRole& role : ptx::MemoryRoles(in)) {
      if (!role.reads || IsParameter(role.space) || role.space == Space::kConst) continue;
      const std::vector<ObjectIndex> objects = ObjectsOf(f, in.operands[role.operand]);
      const bool anywhere = role.space == Space::kGeneric;
      if (IsShared(role.space) || anywhere) grew_ = shared_.Add(objects) || grew_;
      if (role.space == Space::kLocal || anywhere) grew_ = local_.Add(objects) || grew_;
      if (role.space == Space::kGlobal || anywhere) {
        grew_ = global_.Add(objects) || grew_;
        grew_ = read_.insert({f, BytesOf(in), IsWholeNumber(in)}).second || grew_;
      }
    }
  }

  /// Keeps an instruction, what its addresses and, it may be, values are made from, and what decides whether it runs.
  void Keep(std::uint32_t f, std::uint32_t i, bool with_values) {
    std::vector<std::pair<std::uint32_t, bool>> open = {{i, with_values}};
    FunctionSlice& slice = slices_[f];
    while (!open.empty()) {
      const auto [at, wholly] = open.back();
      open.pop_back();
      const bool more = wholly && !wholly_.contains({f, at});
      if (slice.kept[at] && !more) continue;
      grew_ = true;
      if (wholly) wholly_.insert({f, at});
      const Instruction& in = module_.functions[f].body[at];
      const auto need = [&](ptx::RegisterIndex reg) {
        if (slice.needed[reg]) return;
        slice.needed[reg] = true;
        for (const std::uint32_t definition : slice.defined_by[reg])
          open.emplace_back(definition, true);
      };
      if (!slice.kept[at]) {
        slice.kept[at] = true;
        if (in.guard.present) need(in.guard.predicate);
        for (const std::uint32_t branch : slice.control.decided_by[at])
          open.emplace_back(branch, true);
      }
      const bool is_call = ptx::FormOf(in).rules.effect == Effect::kCall;
      const ptx::OperandRules rules = ptx::RulesOf(in);
      for (std::size_t o = 0; o < in.operands.size(); ++o) {
        const Operand& operand = in.operands[o];
        const bool is_address =
            operand.kind == Operand::Kind::kAddress || operand.kind == Operand::Kind::kTensor;
        const bool is_read = is_call ? o > 0 : rules[o].read || is_address;
        if (is_read && (wholly || is_call || !IsStored(in, o, rules[o])))
          ForEachRegister(operand, need);
      }
      // Carries go from one instruction to the next in no register.
      if (ptx::FormOf(in).rules.effect != Effect::kCarry) continue;
      for (std::uint32_t other = 0; other < module_.functions[f].body.size(); ++other) {
        if (module_.functions[f].body[other].Has(ptx::Mod::kCc)) open.emplace_back(other, true);
      }
    }
  }

  /// Takes out of a function what is not kept. A branch that decides nothing any more goes where its ways join.
  static bool Cut(const FunctionSlice& slice, const ptx::Module& module, ptx::Function& function) {
    for (std::uint32_t i = 0; i < function.body.size(); ++i) {
      Instruction& in = function.body[i];
      if (slice.kept[i] || !MayLeave(in)) continue;
      in = JumpTo(slice.control.joins_at[i], module, function);
      if (in.form == 0) return false;
    }
    const std::vector<bool> reached = ReachedOf(function);
    const auto end = static_cast<std::uint32_t>(function.body.size());
    std::vector<bool> left(end, false);
    std::vector<std::uint32_t> next_left(end + std::size_t{1},
                                         end);  // By instruction: it, or what is left after it.
    for (std::uint32_t i = end; i-- > 0;) {
      const Instruction& in = function.body[i];
      const bool jumps = in.opcode == ptx::Opcode::kBra && !in.guard.present;
      const bool goes_on = jumps && next_left[in.operands.front().target] == next_left[i + 1];
      left[i] = reached[i] && !goes_on && (slice.kept[i] || Leaves(in));
      next_left[i] = left[i] ? i : next_left[i + 1];
    }
    std::vector<std::uint32_t> moved(end + std::size_t{1});
    std::vector<Instruction> body;
    for (std::uint32_t i = 0; i < end; ++i) {
      moved[i] = static_cast<std::uint32_t>(body.size());
      if (left[i]) body.push_back(std::move(function.body[i]));
    }
    moved[end] = static_cast<std::uint32_t>(body.size());
    function.body = std::move(body);
    Relabel(function, moved);
    return true;
  }

  static bool Leaves(const Instruction& in) { return ptx::Leaves(ptx::FormOf(in).rules.effect); }
  /// More than one way: it decides something.
  static bool MayLeave(const Instruction& in) {
    return Leaves(in) && (in.guard.present || ptx::FormOf(in).rules.effect == Effect::kTable);
  }

  static std::vector<bool> ReachedOf(const ptx::Function& function) {
    const std::vector<std::vector<std::uint32_t>> next = ptx::ControlFlow(function);
    std::vector<bool> reached(next.size(), false);
    std::vector<std::uint32_t> open;
    const auto reach = [&](std::uint32_t i) {
      if (!reached[i]) open.push_back(i);
      reached[i] = true;
    };
    if (!next.empty()) reach(0);
    while (!open.empty()) {
      const std::uint32_t i = open.back();
      open.pop_back();
      std::ranges::for_each(next[i], reach);
    }
    return reached;
  }

  static void Relabel(ptx::Function& function, const std::vector<std::uint32_t>& moved) {
    const auto move = [&](ptx::InstructionIndex& target) { target = moved[target]; };
    for (auto& [name, target] : function.labels) move(target);
    std::vector<bool> named(function.body.size() + 1, false);
    for (const auto& [name, target] : function.labels) named[target] = true;
    const auto name = [&](ptx::InstructionIndex target) {
      if (!named[target])
        function.labels.emplace_back("$skeleton_" + std::to_string(target), target);
      named[target] = true;
    };
    for (Instruction& in : function.body) {
      for (Operand& operand : in.operands) {
        if (operand.kind == Operand::Kind::kLabel) {
          move(operand.target);
          name(operand.target);
        }
        std::ranges::for_each(operand.targets, move);
        std::ranges::for_each(operand.targets, name);
      }
    }
    std::ranges::stable_sort(function.labels, {}, [](const auto& label) { return label.second; });
  }

  static Instruction JumpTo(std::uint32_t target, const ptx::Module& module,
                            const ptx::Function& function) {
    Instruction jump;
    jump.opcode = ptx::Opcode::kBra;
    Operand label;
    label.kind = Operand::Kind::kLabel;
    label.target = target;
    jump.operands = {std::move(label)};
    jump.form = ptx::MatchForm(ptx::CandidateForms(jump), module, function, jump);
    return jump;
  }

  const ptx::Module& module_;
  Origins origins_;
  std::vector<FunctionSlice> slices_;
  std::vector<std::string> without_;
  std::set<std::pair<std::uint32_t, std::uint32_t>> wholly_;  ///< Kept with all that it reads.
  Wanted shared_, local_, global_;
  std::set<ReadToDecide> read_;  ///< From global memory.
  bool grew_ = false;
};

}  // namespace

Skeleton SkeletonOf(const ptx::Module& module) {
  const bool calls_unknown =
      std::ranges::any_of(CallsOf(module).unknown, [](bool yes) { return yes; });
  if (calls_unknown) return {};
  Slicer slicer(module);
  auto skeleton = slicer.Run();
  const auto some = [&](const ptx::Function& function) {
    return function.is_entry &&
           std::ranges::find(slicer.without(), function.name) == slicer.without().end();
  };
  if (!skeleton || std::ranges::none_of(skeleton->functions, some)) return {};
  const bool in_shared = ComesToShared(*skeleton);
  if (!in_shared) ShrinkShared(*skeleton);
  return {.ptx = ptx::Print(*skeleton),
          .rounds = std::ranges::any_of(skeleton->functions, RoundsSomething),
          .in_shared = in_shared,
          .without = slicer.without()};
}

}  // namespace assay::facts
