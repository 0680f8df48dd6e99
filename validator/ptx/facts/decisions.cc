// Facts::decisions: what a program compares, and where its numbers outgrow their formats, as computed
// from parameters, special registers and loaded elements (slice.h).
#include <algorithm>
#include <set>
#include <tuple>

#include "validator/ptx/facts/slice.h"
#include "validator/ptx/isa.h"

namespace assay::facts {

using ptx::Instruction;
using ptx::Opcode;
using ptx::Operand;

namespace {

using Op = Node::Op;
using Type = Node::Type;

constexpr std::size_t kMostDecisions = 96;
constexpr std::size_t kMostLimits = 32;

/// Does it hang on anything that a case can change, or on how often a loop has turned?
bool Depends(const Decision& decision) {
  return std::ranges::any_of(decision.nodes, [](const Node& node) {
    return node.op == Op::kParameter || node.op == Op::kMemory || node.op == Op::kCounter ||
           (node.op == Op::kSpecial && node.value >= 12 && node.value < 16);
  });
}

/// The same of a number: the plan makes the grid of a case, too.
bool Grows(const Decision& decision) {
  return Depends(decision) || std::ranges::any_of(decision.nodes, [](const Node& node) {
           return node.op == Op::kSpecial && node.value >= 8 && node.value < 12;
         });
}

bool IsSound(const Decision& decision) {
  return std::ranges::none_of(
      decision.nodes, [](const Node& node) { return node.op == Op::kSpecial && node.value > 16; });
}

class DecisionWalk {
 public:
  DecisionWalk(const ptx::Module& module, const Origins& origins, const SiteFinder& sites,
               Facts& facts)
      : module_(module), origins_(origins), sites_(sites), facts_(facts) {}

  void Run() {
    for (std::uint32_t f = 0; f < module_.functions.size(); ++f) {
      const ptx::Function& function = module_.functions[f];
      if (!function.is_entry || !function.has_body) continue;
      const BackwardFlow flow(function);
      for (std::uint32_t i = 0; i < function.body.size(); ++i) One(f, flow, i);
      for (std::uint32_t i = 0; i < function.body.size(); ++i) Limits(f, flow, i);
    }
  }

 private:
  void One(std::uint32_t f, const BackwardFlow& flow, std::uint32_t at) {
    const ptx::Function& function = module_.functions[f];
    const Instruction& in = function.body[at];
    const bool compares = in.opcode == Opcode::kSetp;
    const bool limits = in.opcode == Opcode::kMin || in.opcode == Opcode::kMax;
    const bool cuts = in.opcode == Opcode::kAnd || in.opcode == Opcode::kRem;
    if (!compares && !limits && !cuts) return;
    const std::optional<Type> type =
        NodeTypeOf(in.type(in.types.empty() ? 0 : in.types.size() - 1));
    if (!type || *type == Type::kBool || (!compares && *type == Type::kReal)) return;
    const std::size_t first = compares && in.operands[1].paired ? 2 : 1;
    if (in.operands.size() < first + 2) return;
    const Operand& second = in.operands[first + 1];
    Slice slice(module_, f, flow, origins_, work_);
    auto left = slice.Of(in.operands[first], *type, at);
    auto right = cuts ? std::nullopt : slice.Of(second, *type, at);
    if (cuts) {
      // What is cut off is what the other bits say.
      const bool number = second.kind == Operand::Kind::kImmediate;
      const auto mask = static_cast<std::int64_t>(second.bits);
      const bool low = number && mask > 0 && (mask & (mask + 1)) == 0;
      const bool high = number && mask < 0 && (~mask & (~mask + 1)) == 0;
      if (in.opcode == Opcode::kAnd && !low && !high) return;
      const auto other = in.opcode == Opcode::kRem ? slice.Of(second, *type, at)
                                                   : slice.Constant(high ? ~mask : mask, *type);
      if (!left || !other) return;
      left = slice.Compute(in.opcode == Opcode::kRem ? Op::kRemainder : Op::kAnd, *type,
                           {*left, *other});
      right = slice.Constant(0, *type);
    }
    if (!left || !right) return;
    if (*type != Type::kReal) {
      left = slice.Compute(Op::kConvert, *type, {*left});
      right = slice.Compute(Op::kConvert, *type, {*right});
    }
    if (!left || !right) return;
    Decision decision;
    decision.entry = function.name;
    slice.Finish(*left, *right, decision);
    if (!Depends(decision) || !IsSound(decision)) return;
    if (compares) decision.branch_line = BranchOf(function, in.operands[0].reg, at);
    decision.own_line = sites_.OwnLine(in);
    if (!IsNew(decision) || facts_.decisions.size() >= kMostDecisions + limits_) return;
    facts_.decisions.push_back(std::move(decision));
  }

  /// Numbers that instruction `at` takes for whole, though their format may have been too narrow.
  void Limits(std::uint32_t f, const BackwardFlow& flow, std::uint32_t at) {
    const Instruction& in = module_.functions[f].body[at];
    const bool wide =
        (in.opcode == Opcode::kMul || in.opcode == Opcode::kMad) && in.Has(ptx::Mod::kWide);
    if (!wide && in.opcode != Opcode::kCvt) return;
    const std::optional<Type> from = NodeTypeOf(in.type(wide ? 0 : 1));
    if (!from) return;
    const bool narrow = *from == Type::kS32 || *from == Type::kU32;
    std::int64_t limit = std::int64_t{1} << (*from == Type::kU32 ? 32 : 31);
    if (wide && !narrow) return;
    if (!wide) {
      const int digits = DigitsOf(in.type(0));
      const bool whole = *from == Type::kS64 || *from == Type::kU64 || narrow;
      const bool widens = narrow && ptx::IsInteger(in.type(0)) && ptx::BitsOf(in.type(0)) == 64;
      if (!whole || (digits == 0 && !widens)) return;
      if (digits != 0) limit = std::int64_t{1} << digits;
    }
    for (std::size_t operand = 1; operand < (wide ? 3u : 2u); ++operand) {
      if (limits_ >= kMostLimits) return;
      if (in.operands[operand].kind != Operand::Kind::kRegister) continue;
      Slice slice(module_, f, flow, origins_, work_);
      const auto left = slice.Of(in.operands[operand], *from, at);
      const auto right = slice.Constant(limit, Type::kS64);
      if (!left || !right) continue;
      Decision decision;
      decision.entry = module_.functions[f].name;
      decision.limit = true;
      slice.Finish(*left, *right, decision);
      const bool of_elements = std::ranges::any_of(
          decision.nodes, [](const Node& node) { return node.op == Op::kMemory; });
      if (of_elements || !Grows(decision) || !IsSound(decision)) continue;
      decision.own_line = sites_.OwnLine(in);
      if (!IsNew(decision)) continue;
      ++limits_;
      facts_.decisions.push_back(std::move(decision));
    }
  }

  /// What loops alike compare alike is told of the first of them.
  bool IsNew(const Decision& decision) {
    std::vector<Node> nodes = decision.nodes;
    for (Node& node : nodes) {
      if (node.op == Op::kCounter) node.value = 0;
    }
    return seen_.emplace(decision.entry, std::move(nodes), decision.left, decision.right).second;
  }

  /// Up to which power of two a float of that type holds every integer; 0: it is no narrow float.
  static int DigitsOf(ptx::Type type) {
    switch (type) {
      case ptx::Type::kF32:
        return 24;
      case ptx::Type::kF16:
        return 11;
      case ptx::Type::kBF16:
        return 8;
      default:
        return 0;
    }
  }

  /// The branch or selection that `predicate` decides, alone or with others.
  static std::uint32_t BranchOf(const ptx::Function& function, ptx::RegisterIndex predicate,
                                std::uint32_t at) {
    constexpr std::uint32_t kFar = 64;
    std::set<ptx::RegisterIndex> deciding = {predicate};
    const auto decides = [&](const Operand& operand) {
      return operand.kind == Operand::Kind::kRegister && deciding.contains(operand.reg);
    };
    for (std::uint32_t i = at + 1; i < function.body.size() && i < at + kFar; ++i) {
      const Instruction& in = function.body[i];
      if (in.opcode == Opcode::kBra && in.guard.present && deciding.contains(in.guard.predicate))
        return in.ptx_line;
      if (in.opcode == Opcode::kSelp && decides(in.operands.back())) return in.ptx_line;
      const bool combines = in.type() == ptx::Type::kPred && in.operands.size() > 1 &&
                            in.operands[0].kind == Operand::Kind::kRegister;
      if (combines && std::any_of(in.operands.begin() + 1, in.operands.end(), decides))
        deciding.insert(in.operands[0].reg);
    }
    return 0;
  }

  const ptx::Module& module_;
  const Origins& origins_;
  const SiteFinder& sites_;
  Facts& facts_;
  std::size_t limits_ = 0;
  std::uint64_t work_ = 0;
  std::set<std::tuple<std::string, std::vector<Node>, std::uint32_t, std::uint32_t>> seen_;
};

}  // namespace

void FindDecisions(const ptx::Module& module, const Origins& origins, const SiteFinder& sites,
                   Facts& facts) {
  DecisionWalk(module, origins, sites, facts).Run();
}

}  // namespace assay::facts
