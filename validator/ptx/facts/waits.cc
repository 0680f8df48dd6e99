#include "validator/ptx/facts/waits.h"

#include <algorithm>
#include <optional>

#include "validator/ptx/facts/compute_impl.h"
#include "validator/ptx/isa.h"

namespace assay::facts {

using ptx::Instruction;
using ptx::Operand;
using ptx::Space;

namespace {

bool IsShared(Space space) { return space == Space::kShared || space == Space::kSharedCta; }
/// Not memory that kernels share.
bool IsParameter(Space space) {
  return space == Space::kParam || space == Space::kParamEntry || space == Space::kParamFunc;
}

void AddRegisters(const Operand& operand, std::vector<ptx::RegisterIndex>& registers) {
  if (operand.kind == Operand::Kind::kRegister || operand.has_base_register)
    registers.push_back(operand.reg);
  for (const Operand& element : operand.elements) AddRegisters(element, registers);
}

std::vector<ptx::RegisterIndex> Written(const Instruction& in) {
  std::vector<ptx::RegisterIndex> registers;
  const std::size_t written = std::min(ptx::RulesOf(in).written(), in.operands.size());
  for (std::size_t o = 0; o < written; ++o) AddRegisters(in.operands[o], registers);
  return registers;
}

std::vector<ptx::RegisterIndex> Read(const Instruction& in) {
  std::vector<ptx::RegisterIndex> registers;
  for (std::size_t o = ptx::RulesOf(in).written(); o < in.operands.size(); ++o)
    AddRegisters(in.operands[o], registers);
  return registers;
}

bool IsCall(const Instruction& in) { return ptx::FormOf(in).rules.effect == ptx::Effect::kCall; }

/// Of an immediate, or of a register that is set to one, once.
std::optional<std::int64_t> ConstantOf(const ptx::Function& function, const Operand& operand) {
  if (operand.kind == Operand::Kind::kImmediate) return static_cast<std::int64_t>(operand.bits);
  if (operand.kind != Operand::Kind::kRegister) return std::nullopt;
  const Instruction* set = nullptr;
  for (const Instruction& in : function.body) {
    const std::vector<ptx::RegisterIndex> written = Written(in);
    if (std::ranges::find(written, operand.reg) == written.end()) continue;
    if (set != nullptr) return std::nullopt;
    set = &in;
  }
  const bool moves = set != nullptr && set->opcode == ptx::Opcode::kMov && !set->guard.present &&
                     set->operands.size() == 2;
  if (!moves || set->operands[1].kind != Operand::Kind::kImmediate) return std::nullopt;
  return static_cast<std::int64_t>(set->operands[1].bits);
}

/// Who loads so means to see what others write, perhaps what another program writes.
bool IsStrongLoad(const Instruction& in) {
  if (ptx::UpdatesMemory(ptx::FormOf(in))) return false;
  return in.Has(ptx::Mod::kVolatile) || in.Has(ptx::Mod::kRelaxed) || in.Has(ptx::Mod::kAcquire);
}

bool Overlap(const OriginSet& some, const OriginSet& others) {
  return std::ranges::any_of(some.origins(),
                             [&](const Origin& origin) { return others.Has(origin.object); });
}

}  // namespace

Waits::Waits(const ptx::Module& module, const Origins& origins)
    : module_(module), origins_(origins) {
  for (std::uint32_t f = 0; f < module.functions.size(); ++f) {
    const ptx::Function& function = module.functions[f];
    for (ptx::InstructionIndex i = 0; i < function.body.size(); ++i) {
      const Instruction& in = function.body[i];
      for (const ptx::MemoryRole& role : ptx::MemoryRoles(in)) {
        // What barriers hold tells nothing but who has come.
        if (!role.writes || role.mbarrier || role.space == Space::kLocal || IsParameter(role.space))
          continue;
        const Operand& address = in.operands[role.operand];
        OriginSet objects = AddressedBy(module, origins, f, address);
        const bool unknown = address.kind == Operand::Kind::kTensor || objects.everything() ||
                             IsUnknownAddress(objects, origins);
        writes_.push_back({{f, i}, role.space, std::move(objects), unknown, Counts(function, in)});
      }
    }
  }
}

bool Waits::Counts(const ptx::Function& function, const Instruction& in) const {
  if (in.opcode != ptx::Opcode::kAtom && in.opcode != ptx::Opcode::kRed) return false;
  const ptx::Type type = in.type();
  const bool is_wide = type == ptx::Type::kU64 || type == ptx::Type::kS64;
  if (!is_wide && type != ptx::Type::kU32 && type != ptx::Type::kS32) return false;
  if (in.Has(ptx::Mod::kInc)) return true;
  if (!in.Has(ptx::Mod::kAdd) || in.operands.size() < 2) return false;
  const std::size_t address = in.opcode == ptx::Opcode::kAtom ? 1 : 0;
  if (in.operands.size() < address + 2) return false;
  const auto step = ConstantOf(function, in.operands[address + 1]);
  return step && (is_wide ? *step : static_cast<std::int32_t>(*step)) > 0;
}

Waits::Where Waits::WhereIs(const OriginSet& objects) const {
  if (objects.everything() || IsUnknownAddress(objects, origins_)) return Where::kUnknown;
  std::optional<Where> where;
  for (const Origin& origin : objects.origins()) {
    const Object& object = origins_.object(origin.object);
    Where one = Where::kGlobal;
    if (object.kind == Object::Kind::kModuleVariable ||
        object.kind == Object::Kind::kFunctionVariable) {
      const ptx::Variable& variable =
          object.kind == Object::Kind::kModuleVariable
              ? module_.variables[object.index]
              : module_.functions[object.function].variables[object.index];
      one = IsShared(variable.space)                                              ? Where::kShared
            : variable.space == Space::kGlobal || variable.space == Space::kConst ? Where::kGlobal
                                                                                  : Where::kUnknown;
    } else if (object.kind != Object::Kind::kEntryParameter) {
      continue;
    }
    if (where && *where != one) return Where::kUnknown;
    where = one;
  }
  return where.value_or(Where::kUnknown);
}

bool Waits::Meets(const Write& write, const OriginSet& objects, Where where) const {
  if (where == Where::kShared && write.space == Space::kGlobal) return false;
  if (where == Where::kGlobal && (IsShared(write.space) || write.space == Space::kSharedCluster))
    return false;
  return write.unknown || Overlap(write.objects, objects);
}

bool Waits::StoresSuch(const Place& store) {
  const ptx::Function& function = module_.functions[store.first];
  const Instruction& in = function.body[store.second];
  if (IsCall(in)) return true;
  for (const ptx::MemoryRole& role : ptx::MemoryRoles(in)) {
    if (role.reads && !role.mbarrier && Reaches(store)) return true;
  }
  std::vector<bool> wanted(function.registers.size(), false);
  std::vector<ptx::RegisterIndex> left = Read(in);
  while (!left.empty()) {
    const ptx::RegisterIndex reg = left.back();
    left.pop_back();
    if (reg >= wanted.size() || wanted[reg]) continue;
    wanted[reg] = true;
    for (ptx::InstructionIndex i = 0; i < function.body.size(); ++i) {
      const Instruction& each = function.body[i];
      const std::vector<ptx::RegisterIndex> written = Written(each);
      if (std::ranges::find(written, reg) == written.end()) continue;
      if (IsCall(each)) return true;
      const bool reads = std::ranges::any_of(ptx::MemoryRoles(each), &ptx::MemoryRole::reads);
      if (reads && Reaches({store.first, i})) return true;
      std::ranges::copy(Read(each), std::back_inserter(left));
    }
  }
  return false;
}

bool Waits::Decide(const Place& read) {
  const Instruction& in = module_.functions[read.first].body[read.second];
  if (ReadsKernelParameter(module_.functions[read.first], in)) return false;
  for (const ptx::MemoryRole& role : ptx::MemoryRoles(in)) {
    if (!role.reads || role.mbarrier || role.space == Space::kConst) continue;
    const Operand& address = in.operands[role.operand];
    if (address.kind == Operand::Kind::kTensor || role.space == Space::kLocal ||
        role.space == Space::kSharedCluster || IsParameter(role.space))
      return true;
    const OriginSet objects = AddressedBy(module_, origins_, read.first, address);
    const Where where = WhereIs(objects);
    if (where == Where::kUnknown || (where == Where::kGlobal && IsStrongLoad(in))) return true;
    for (const Write& write : writes_) {
      if (!Meets(write, objects, where)) continue;
      if (where == Where::kShared) {
        // Of what is not told apart by its address nothing is followed.
        if (write.unknown || StoresSuch(write.place)) return true;
      } else if (write.unknown || !write.counts || !Counts(module_.functions[read.first], in)) {
        return true;
      }
    }
  }
  return false;
}

// All that is read for it, once: what hangs on nothing but itself is no wait.
bool Waits::Reaches(const Place& read) { return seen_.insert(read).second && Decide(read); }

bool Waits::MayBeOn(std::uint32_t function, ptx::InstructionIndex read) {
  seen_.clear();
  return Reaches({function, read});
}

Polling Waits::Of(std::uint32_t function) {
  Polling polling = PollingOf(module_.functions[function]);
  const auto is_own = [&](ptx::InstructionIndex read) { return !MayBeOn(function, read); };
  std::erase_if(polling.reads, is_own);
  std::erase_if(polling.perhaps, is_own);
  return polling;
}

}  // namespace assay::facts
