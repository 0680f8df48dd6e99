// Which memory is read and written, and what outlives a launch.
#include <algorithm>
#include <array>
#include <optional>

#include "validator/ptx/facts/compute_impl.h"
#include "validator/ptx/isa.h"

namespace assay::facts {

using ptx::Instruction;
using ptx::Operand;
using ptx::Space;

namespace {

constexpr std::size_t kMostMemoryUses = 8192;
constexpr std::size_t kMostAtomics = 512;
constexpr std::size_t kMostWrites = 8;

bool IsFloat(ptx::Type type) {
  constexpr std::array kFloats = {ptx::Type::kF16,    ptx::Type::kF16x2, ptx::Type::kBF16,
                                  ptx::Type::kBF16x2, ptx::Type::kF32,   ptx::Type::kF32x2,
                                  ptx::Type::kF64};
  return std::ranges::find(kFloats, type) != kFloats.end();
}

bool IsOwnShared(Space space) { return space == Space::kShared || space == Space::kSharedCta; }

/// Memory of the objects among `set` that are memory, taken as addresses where any is.
OriginSet Addressed(const Origins& origins, const OriginSet& set) {
  if (set.everything()) return set;
  OriginSet strong;
  OriginSet all;
  for (const Origin& origin : set.origins()) {
    if (origins.object(origin.object).kind == Object::Kind::kSpecialRegister) continue;
    all.Add(Origin{origin.object, false});
    if (!origin.derived && origin.object != Origins::kMemory) strong.Add(origin.object);
  }
  return strong.empty() ? all : strong;
}

/// Parameters that are declared as pointers are what an address is of; others beside them are
/// offsets.
OriginSet WithoutOffsets(const ptx::Module& module, const Origins& origins, const OriginSet& set) {
  const auto is_offset = [&](const Origin& origin) {
    const Object& object = origins.object(origin.object);
    return object.kind == Object::Kind::kEntryParameter &&
           !module.functions[object.function].params[object.index].is_pointer;
  };
  if (set.everything() || std::ranges::all_of(set.origins(), is_offset)) return set;
  OriginSet kept;
  for (const Origin& origin : set.origins()) {
    if (!is_offset(origin)) kept.Add(origin);
  }
  return kept;
}

std::string_view OperationOf(const Instruction& in) {
  constexpr std::array kOperations = {
      ptx::Mod::kAdd, ptx::Mod::kMin, ptx::Mod::kMax, ptx::Mod::kInc,  ptx::Mod::kDec,
      ptx::Mod::kAnd, ptx::Mod::kOr,  ptx::Mod::kXor, ptx::Mod::kExch, ptx::Mod::kCas};
  for (const ptx::Mod mod : kOperations) {
    if (in.Has(mod)) return ptx::Name(mod);
  }
  return "";
}

/// The variables of Facts in the order in which they were declared (compute.cc).
std::vector<ObjectIndex> GlobalObjects(const ptx::Module& module, const Origins& origins) {
  std::vector<ObjectIndex> objects;
  for (const auto wanted : {Object::Kind::kModuleVariable, Object::Kind::kFunctionVariable}) {
    for (ObjectIndex i = 0; i < origins.objects(); ++i) {
      const Object& object = origins.object(i);
      if (object.kind != wanted) continue;
      const ptx::Variable& variable =
          wanted == Object::Kind::kModuleVariable
              ? module.variables[object.index]
              : module.functions[object.function].variables[object.index];
      if (variable.space == Space::kGlobal || variable.space == Space::kConst) objects.push_back(i);
    }
  }
  return objects;
}

class MemoryWalk {
 public:
  MemoryWalk(const ptx::Module& module, const Origins& origins, const SiteFinder& sites,
             Facts& facts)
      : module_(module),
        origins_(origins),
        sites_(sites),
        facts_(facts),
        globals_(GlobalObjects(module, origins)) {}

  void Run() {
    for (Variable& variable : facts_.variables) variable.written = Answer::kNo;
    for (std::uint32_t f = 0; f < module_.functions.size(); ++f) {
      for (const Instruction& in : module_.functions[f].body) One(f, in);
    }
    for (std::size_t i = 0; i < globals_.size(); ++i) Judge(globals_[i], facts_.variables[i]);
  }

 private:
  void One(std::uint32_t f, const Instruction& in) {
    if (ptx::UpdatesMemory(ptx::FormOf(in))) AddAtomic(f, in);
    for (const ptx::MemoryRole& role : ptx::MemoryRoles(in)) {
      const OriginSet set = origins_.Of(f, in.operands[role.operand]);
      if (role.writes) Writes(f, in, role, set);
      if (role.space == Space::kParam || role.space == Space::kParamEntry ||
          role.space == Space::kParamFunc)
        continue;
      if (facts_.memory.size() >= kMostMemoryUses) {
        ++facts_.memory_left_out;
        continue;
      }
      MemoryUse& use = facts_.memory.emplace_back();
      use.opcode = ptx::Mnemonic(in.opcode);
      use.space = ptx::Name(role.space);
      use.reads = role.reads;
      use.writes = role.writes;
      use.origins =
          NamesOf(module_, origins_, AddressedBy(module_, origins_, f, in.operands[role.operand]));
      if (use.origins.empty()) use.origins = {"unknown"};
      use.ptx_line = in.ptx_line;
      use.own_line = sites_.OwnLine(in);
    }
  }

  void Writes(std::uint32_t f, const Instruction& in, const ptx::MemoryRole& role,
              const OriginSet& set) {
    if (role.space != Space::kGeneric && role.space != Space::kGlobal) return;
    const bool tensor = in.operands[role.operand].kind == Operand::Kind::kTensor;
    if (tensor || IsUnknownAddress(set, origins_)) unknown_store_ = true;
    if (set.everything()) return;
    for (std::size_t i = 0; i < globals_.size(); ++i) {
      if (!set.Has(globals_[i])) continue;
      Variable& variable = facts_.variables[i];
      const Origin itself{globals_[i], false};
      const bool seen = std::ranges::find(set.origins(), itself) != set.origins().end();
      if (variable.written != Answer::kYes)
        variable.written = seen ? Answer::kYes : Answer::kUnknown;
      AddWrite(variable, sites_.Of(f, in));
    }
  }

  static void AddWrite(Variable& variable, Site site) {
    if (variable.writes.size() < kMostWrites) variable.writes.push_back(std::move(site));
  }

  void Judge(ObjectIndex object, Variable& variable) {
    if (MayBe(variable.written) || !origins_.Escaped(object)) return;
    if (!unknown_store_ && !origins_.unknown_code().yes && !origins_.given_up()) return;
    variable.written = Answer::kUnknown;
    const Origins::Place& place = origins_.EscapedAt(object);
    if (place.instruction < module_.functions[place.function].body.size())
      AddWrite(variable, sites_.Of(place.function,
                                   module_.functions[place.function].body[place.instruction]));
  }

  void AddAtomic(std::uint32_t f, const Instruction& in) {
    if (facts_.atomics.size() >= kMostAtomics) {
      ++facts_.atomics_left_out;
      return;
    }
    Atomic& atomic = facts_.atomics.emplace_back();
    atomic.operation = OperationOf(in);
    atomic.type = ptx::Name(in.types.empty() ? ptx::Type::kNone : in.types.back());
    atomic.shared = IsOwnShared(in.space);
    atomic.on_float = std::ranges::any_of(in.types, IsFloat);
    atomic.result_used =
        ptx::RulesOf(in).written() > 0 && in.operands[0].kind != Operand::Kind::kSink;
    atomic.site = sites_.Of(f, in);
  }

  const ptx::Module& module_;
  const Origins& origins_;
  const SiteFinder& sites_;
  Facts& facts_;
  std::vector<ObjectIndex> globals_;
  bool unknown_store_ = false;
};

}  // namespace

OriginSet AddressedBy(const ptx::Module& module, const Origins& origins, std::uint32_t function,
                      const ptx::Operand& address) {
  return WithoutOffsets(module, origins, Addressed(origins, origins.Of(function, address)));
}

std::vector<std::string> NamesOf(const ptx::Module& module, const Origins& origins,
                                 const OriginSet& set) {
  if (set.everything()) return {"unknown"};
  std::vector<std::string> names;
  for (const Origin& origin : set.origins()) {
    const Object& object = origins.object(origin.object);
    std::string name;
    switch (object.kind) {
      case Object::Kind::kMemory:
        name = "memory";
        break;
      case Object::Kind::kEntryParameter:
        name = module.functions[object.function].name + "#" + std::to_string(object.index);
        break;
      case Object::Kind::kModuleVariable:
        name = module.variables[object.index].name;
        break;
      case Object::Kind::kFunctionVariable:
        name = module.functions[object.function].variables[object.index].name;
        break;
      case Object::Kind::kSpecialRegister:
        name = ptx::Name(static_cast<ptx::SpecialRegister>(object.index));
        break;
    }
    if (std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
  }
  return names;
}

void FindMemory(const ptx::Module& module, const Origins& origins, const SiteFinder& sites,
                Facts& facts) {
  MemoryWalk(module, origins, sites, facts).Run();
}

}  // namespace assay::facts
