#include "validator/ptx/control_flow.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "validator/ptx/isa.h"

namespace assay::ptx {

std::vector<std::vector<InstructionIndex>> ControlFlow(const Function& function) {
  const auto count = static_cast<InstructionIndex>(function.body.size());
  std::vector<std::vector<InstructionIndex>> successors(count);
  for (InstructionIndex i = 0; i < count; ++i) {
    const Instruction& in = function.body[i];
    const bool ends = Leaves(FormOf(in).rules.effect);
    if ((!ends || in.guard.present) && i + 1 < count) successors[i].push_back(i + 1);
    for (const Operand& operand : in.operands) {
      if (operand.kind == Operand::Kind::kLabel && operand.target < count)
        successors[i].push_back(operand.target);
      for (const InstructionIndex target : operand.targets) {
        if (target < count) successors[i].push_back(target);
      }
    }
  }
  return successors;
}

namespace {

/// A set of registers.
class Registers {
 public:
  explicit Registers(std::size_t count) : words_((count + 63) / 64) {}
  void Add(RegisterIndex reg) { words_[reg / 64] |= std::uint64_t{1} << reg % 64; }
  bool Has(RegisterIndex reg) const { return (words_[reg / 64] >> reg % 64 & 1) != 0; }
  /// Adds those of `more` that are not among `but`. Were some not in it?
  bool AddAll(const Registers& more, const Registers& but) {
    bool grew = false;
    for (std::size_t i = 0; i < words_.size(); ++i) {
      const std::uint64_t all = words_[i] | (more.words_[i] & ~but.words_[i]);
      grew = grew || all != words_[i];
      words_[i] = all;
    }
    return grew;
  }

 private:
  std::vector<std::uint64_t> words_;
};

/// Instructions that run one after the other, what they read first, and what they write in any case.
struct Stretch {
  InstructionIndex first = 0, end = 0;
  Registers live, written;
  std::vector<std::size_t> before;  ///< Stretches that may come right before it.
};

template <class Use>
void ForEachRegister(const Operand& operand, const Use& use) {
  if (operand.kind == Operand::Kind::kRegister || operand.has_base_register) use(operand.reg);
  for (const Operand& element : operand.elements) ForEachRegister(element, use);
}

void Look(const Instruction& in, Stretch& stretch) {
  const auto read = [&](RegisterIndex reg) {
    if (!stretch.written.Has(reg)) stretch.live.Add(reg);
  };
  const bool is_call = FormOf(in).rules.effect == Effect::kCall;
  const OperandRules rules = RulesOf(in);
  if (in.guard.present) read(in.guard.predicate);
  for (std::size_t o = 0; o < in.operands.size(); ++o) {
    const Operand& operand = in.operands[o];
    const bool is_address =
        operand.kind == Operand::Kind::kAddress || operand.kind == Operand::Kind::kTensor;
    if (is_call ? o > 0 : rules[o].read || is_address) ForEachRegister(operand, read);
  }
  if (in.guard.present || is_call) return;
  for (std::size_t o = 0; o < std::min(rules.written(), in.operands.size()); ++o)
    ForEachRegister(in.operands[o], [&](RegisterIndex reg) { stretch.written.Add(reg); });
}

std::vector<Stretch> StretchesOf(const Function& function) {
  const std::vector<std::vector<InstructionIndex>> next = ControlFlow(function);
  std::vector<bool> begins(next.size(), false);
  begins[0] = true;
  for (InstructionIndex i = 0; i < next.size(); ++i) {
    const bool goes_on = next[i].size() == 1 && next[i].front() == i + 1;
    if (goes_on) continue;
    if (i + 1 < next.size()) begins[i + 1] = true;
    for (const InstructionIndex target : next[i]) begins[target] = true;
  }
  std::vector<Stretch> stretches;
  std::vector<std::size_t> of(next.size());
  for (InstructionIndex i = 0; i < next.size(); ++i) {
    if (begins[i])
      stretches.push_back({.first = i,
                           .end = i,
                           .live = Registers(function.registers.size()),
                           .written = Registers(function.registers.size()),
                           .before = {}});
    of[i] = stretches.size() - 1;
    stretches.back().end = i + 1;
    Look(function.body[i], stretches.back());
  }
  for (InstructionIndex i = 0; i < next.size(); ++i) {
    for (const InstructionIndex target : next[i]) {
      if (begins[target]) stretches[of[target]].before.push_back(of[i]);
    }
  }
  return stretches;
}

}  // namespace

std::vector<bool> MayBeUnset(const Function& function) {
  // Sets of some hundred megabytes are worth no fill.
  constexpr std::size_t kMost = std::size_t{1} << 28;
  std::vector<bool> unset(function.registers.size(), true);
  if (function.body.empty() || function.registers.size() * function.body.size() > kMost)
    return unset;
  std::vector<Stretch> stretches = StretchesOf(function);
  // From the last one, which most of the others come before.
  std::vector<std::size_t> open;
  std::vector<bool> waits(stretches.size(), true);
  for (std::size_t i = 0; i < stretches.size(); ++i) open.push_back(i);
  while (!open.empty()) {
    const std::size_t at = open.back();
    open.pop_back();
    waits[at] = false;
    for (const std::size_t before : stretches[at].before) {
      if (!stretches[before].live.AddAll(stretches[at].live, stretches[before].written) ||
          waits[before])
        continue;
      waits[before] = true;
      open.push_back(before);
    }
  }
  for (RegisterIndex reg = 0; reg < unset.size(); ++reg) unset[reg] = stretches[0].live.Has(reg);
  return unset;
}

}  // namespace assay::ptx
