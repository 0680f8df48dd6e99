// Facts::decisions: what a program compares, where its numbers outgrow their formats or were rounded, as computed
// from parameters, special registers and loaded elements (slice.h).
#include <algorithm>
#include <bit>
#include <iterator>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

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
constexpr std::size_t kMostRounded = 12;

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
      compared_.emplace_back();
      for (std::uint32_t i = 0; i < function.body.size(); ++i) One(f, flow, i);
      for (std::uint32_t i = 0; i < function.body.size(); ++i) Limits(f, flow, i);
      for (std::uint32_t i = 0; i < function.body.size(); ++i) Rounded(f, flow, i);
    }
    KeepSome();
  }

 private:
  /// Of each kernel as many comparisons as there is room for, what ends its loops and then the first ones: one that compares
  /// each element of a row by itself leaves room for the others.
  void KeepSome() {
    std::vector<std::size_t> kept(compared_.size(), 0);
    std::size_t left = kMostDecisions;
    for (bool any = true; any && left > 0;) {
      any = false;
      for (std::size_t f = 0; f < compared_.size() && left > 0; ++f) {
        if (kept[f] >= compared_[f].size()) continue;
        ++kept[f];
        --left;
        any = true;
      }
    }
    std::vector<Decision> all;
    for (std::size_t f = 0; f < compared_.size(); ++f) {
      std::size_t ends = kept[f];
      std::size_t others =
          kept[f] - std::min<std::size_t>(kept[f], static_cast<std::size_t>(std::ranges::count(
                                                       compared_[f], true, &Compared::ends_loop)));
      for (Compared& compared : compared_[f]) {
        std::size_t& room = compared.ends_loop ? ends : others;
        if (room == 0) continue;
        --room;
        all.push_back(std::move(compared.decision));
      }
    }
    std::ranges::move(others_, std::back_inserter(all));
    facts_.decisions = std::move(all);
  }

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
    const Instruction* const branch =
        compares ? BranchOf(function, in.operands[0].reg, at) : nullptr;
    if (branch != nullptr) decision.branch_line = branch->ptx_line;
    decision.own_line = sites_.OwnLine(in);
    const bool ends_loop = branch != nullptr &&
                           flow.EndsLoop(static_cast<std::uint32_t>(branch - function.body.data()));
    if (!IsNew(decision) || (compared_.back().size() >= kMostDecisions && !ends_loop)) return;
    compared_.back().push_back({std::move(decision), ends_loop});
  }

  /// A number of which an instruction keeps too little once it has reached `limit`.
  struct Room {
    const Operand* number;
    Type type;
    std::uint32_t at;  ///< Where it is read.
    std::int64_t limit;
  };

  /// Numbers that instruction `at` takes for whole, though their format may have been too narrow; and
  /// numbers of which it cuts off the upper digits, as 24-bit products do with both of their factors.
  /// Fewer digits than those of an index are cut off on purpose.
  std::vector<Room> RoomsOf(const ptx::Function& function, const BackwardFlow& flow,
                            std::uint32_t at) {
    constexpr int kIndexDigits = 15;
    const Instruction& in = function.body[at];
    std::vector<Room> rooms;
    const auto add = [&](std::size_t operand, Type type, int digits) {
      if (digits >= kIndexDigits && digits < 62 && operand < in.operands.size())
        rooms.push_back({&in.operands[operand], type, at, std::int64_t{1} << digits});
    };
    const auto number_at = [&](std::size_t operand) {
      return operand < in.operands.size() && in.operands[operand].kind == Operand::Kind::kImmediate
                 ? std::optional(in.operands[operand].bits)
                 : std::nullopt;
    };
    const std::optional<Type> type = NodeTypeOf(in.type(0));
    const int bits = ptx::BitsOf(in.type(0));
    const int sign = type == Type::kS32 || type == Type::kS64 ? 1 : 0;
    switch (in.opcode) {
      case Opcode::kMul24:
      case Opcode::kMad24:
        for (const std::size_t factor : {1, 2}) add(factor, type.value_or(Type::kU32), 24 - sign);
        break;
      case Opcode::kAnd: {
        const auto mask = number_at(2);
        if (!mask || !type || *type == Type::kBool) break;
        const std::uint64_t ones = bits < 64 ? *mask & ((std::uint64_t{1} << bits) - 1) : *mask;
        const bool together = ones != 0 && (ones & (ones + (ones & (~ones + 1)))) == 0;
        const int digits = static_cast<int>(std::bit_width(ones));
        if (together && digits < bits) add(1, *type, digits);
        break;
      }
      case Opcode::kBfe: {
        const auto first = number_at(2), count = number_at(3);
        if (first && count && type && *first + *count < static_cast<unsigned>(bits))
          add(1, *type, static_cast<int>(*first + *count) - sign);
        break;
      }
      case Opcode::kShr: {
        // Up and down again.
        if (!number_at(2) || !type || in.operands[1].kind != Operand::Kind::kRegister) break;
        const auto up = flow.Reaching(in.operands[1].reg, at, work_);
        if (up.size() != 1 || function.body[up[0]].opcode != Opcode::kShl) break;
        const Instruction& shl = function.body[up[0]];
        if (shl.operands[2].kind != Operand::Kind::kImmediate || shl.operands[2].bits >= 64u) break;
        const int digits = bits - static_cast<int>(shl.operands[2].bits) - sign;
        if (digits >= kIndexDigits && digits < bits - sign)
          rooms.push_back({&shl.operands[1], *type, up[0], std::int64_t{1} << digits});
        break;
      }
      case Opcode::kDiv:
      case Opcode::kRem:
        // Tiles of what is added up to round it up, and parts of a product. Not what is cut from 64 bits on purpose, where it
        // fits in 32.
        if ((type == Type::kS32 || type == Type::kU32) &&
            !IsCut(function, flow, in.operands[1], at))
          add(1, *type, 32 - sign);
        break;
      case Opcode::kMul:
      case Opcode::kMad:
        if (!type || !in.Has(ptx::Mod::kWide) || bits != 32) break;
        for (const std::size_t factor : {1, 2}) add(factor, *type, 32 - sign);
        break;
      case Opcode::kCvt: {
        const std::optional<Type> from = NodeTypeOf(in.type(1));
        const bool narrow = from == Type::kS32 || from == Type::kU32;
        if (!narrow && from != Type::kS64 && from != Type::kU64) break;
        if (const int digits = DigitsOf(in.type(0)); digits != 0) {
          rooms.push_back({&in.operands[1], *from, at, std::int64_t{1} << digits});
        } else if (ptx::IsInteger(in.type(0)) && bits == 16) {
          add(1, *from, type == Type::kS16 ? 15 : 16);
        } else if (narrow && ptx::IsInteger(in.type(0)) && bits == 64) {
          add(1, *from, from == Type::kS32 ? 31 : 32);
        }
        break;
      }
      case Opcode::kSt:
        // Of a wider register the lower bits are stored.
        if (in.operands.size() < 2 || NodeTypeOf(in.type(0)) == Type::kReal || bits > 32) break;
        for (const Operand& stored : in.operands[1].elements.empty()
                                         ? std::span(&in.operands[1], 1)
                                         : std::span(in.operands[1].elements)) {
          if (stored.kind != Operand::Kind::kRegister) continue;
          const auto held = NodeTypeOf(function.registers[stored.reg].type);
          const int width = ptx::BitsOf(function.registers[stored.reg].type);
          if (held && *held != Type::kReal && width > bits && bits > kIndexDigits)
            rooms.push_back({&stored, *held, at, std::int64_t{1} << bits});
        }
        break;
      default:
        break;
    }
    return rooms;
  }

  /// Is it the lower half of one number of 64 bits?
  bool IsCut(const ptx::Function& function, const BackwardFlow& flow, const Operand& operand,
             std::uint32_t at) {
    if (operand.kind != Operand::Kind::kRegister) return false;
    const auto definitions = flow.Reaching(operand.reg, at, work_);
    return definitions.size() == 1 && function.body[definitions[0]].opcode == Opcode::kCvt &&
           ptx::BitsOf(function.body[definitions[0]].type(1)) == 64;
  }

  /// Is it the lower half of a product whose upper half is taken as well? Then nothing of it is lost.
  bool IsHalfOfProduct(const ptx::Function& function, const BackwardFlow& flow, const Room& room) {
    const auto definitions = flow.Reaching(room.number->reg, room.at, work_);
    if (definitions.size() != 1) return false;
    const Instruction& low = function.body[definitions[0]];
    if (low.opcode != Opcode::kMul || low.Has(ptx::Mod::kHi) || low.Has(ptx::Mod::kWide))
      return false;
    const auto same = [](const Operand& a, const Operand& b) {
      return a.kind == b.kind && (a.kind == Operand::Kind::kRegister
                                      ? a.reg == b.reg
                                      : a.kind == Operand::Kind::kImmediate && a.bits == b.bits);
    };
    return std::ranges::any_of(function.body, [&](const Instruction& high) {
      return high.opcode == Opcode::kMul && high.Has(ptx::Mod::kHi) &&
             ptx::BitsOf(high.type(0)) == ptx::BitsOf(low.type(0)) &&
             ((same(high.operands[1], low.operands[1]) &&
               same(high.operands[2], low.operands[2])) ||
              (same(high.operands[1], low.operands[2]) && same(high.operands[2], low.operands[1])));
    });
  }

  void Limits(std::uint32_t f, const BackwardFlow& flow, std::uint32_t at) {
    const ptx::Function& function = module_.functions[f];
    for (const Room& room : RoomsOf(function, flow, at)) {
      if (limits_ >= kMostLimits) return;
      if (room.number->kind != Operand::Kind::kRegister || IsHalfOfProduct(function, flow, room))
        continue;
      Slice slice(module_, f, flow, origins_, work_);
      const auto left = slice.Of(*room.number, room.type, room.at);
      const auto right = slice.Constant(room.limit, Type::kS64);
      if (!left || !right) continue;
      Decision decision;
      decision.entry = function.name;
      decision.limit = true;
      slice.Finish(*left, *right, decision);
      const bool of_elements = std::ranges::any_of(
          decision.nodes, [](const Node& node) { return node.op == Op::kMemory; });
      if (of_elements || !Grows(decision) || !IsSound(decision)) continue;
      decision.own_line = sites_.OwnLine(function.body[at]);
      if (!IsNew(decision)) continue;
      ++limits_;
      others_.push_back(std::move(decision));
    }
  }

  /// A float may have been rounded to a whole one before it becomes an integer: ceilf, roundf.
  const Instruction& WhatRounds(const ptx::Function& function, const BackwardFlow& flow,
                                const Instruction& in, std::uint32_t at) {
    const auto definitions = flow.Reaching(in.operands[1].reg, at, work_);
    if (definitions.size() != 1) return in;
    const Instruction& before = function.body[definitions[0]];
    const bool whole = before.opcode == Opcode::kCvt && before.types.size() == 2 &&
                       NodeTypeOf(before.type(0)) == Type::kReal &&
                       NodeTypeOf(before.type(1)) == Type::kReal &&
                       (before.Has(ptx::Mod::kRni) || before.Has(ptx::Mod::kRpi) ||
                        before.Has(ptx::Mod::kRmi) || before.Has(ptx::Mod::kRzi));
    return whole ? before : in;
  }

  /// A float, made of integers, that becomes an integer: a quotient by a reciprocal.
  void Rounded(std::uint32_t f, const BackwardFlow& flow, std::uint32_t at) {
    using Becomes = Decision::Becomes;
    const ptx::Function& function = module_.functions[f];
    const Instruction& in = function.body[at];
    if (in.opcode != Opcode::kCvt || in.operands.size() < 2 || rounded_ >= kMostRounded ||
        in.operands[1].kind != Operand::Kind::kRegister || !ptx::IsInteger(in.type(0)) ||
        NodeTypeOf(in.type(1)) != Type::kReal)
      return;
    Slice slice(module_, f, flow, origins_, work_);
    const auto left = slice.Of(in.operands[1], Type::kReal, at);
    const auto right = slice.Constant(0, Type::kS64);
    if (!left || !right) return;
    Decision decision;
    decision.entry = function.name;
    const Instruction& rounds = WhatRounds(function, flow, in, at);
    decision.becomes = rounds.Has(ptx::Mod::kRni)   ? Becomes::kNearest
                       : rounds.Has(ptx::Mod::kRpi) ? Becomes::kUpper
                                                    : Becomes::kLower;
    slice.Finish(*left, *right, decision);
    const auto some = [&](auto is) { return std::ranges::any_of(decision.nodes, is); };
    const bool of_integers = some([&](const Node& node) {
      return node.op == Op::kConvert && node.type == Type::kReal &&
             decision.nodes[node.of[0]].type != Type::kReal;
    });
    const bool of_elements = some([](const Node& node) { return node.op == Op::kMemory; });
    if (!of_integers || of_elements || !Grows(decision) || !IsSound(decision)) return;
    decision.own_line = sites_.OwnLine(in);
    if (!IsNew(decision)) return;
    ++rounded_;
    others_.push_back(std::move(decision));
  }

  /// What loops alike compare alike is told of the first of them.
  bool IsNew(const Decision& decision) {
    std::vector<Node> nodes = decision.nodes;
    for (Node& node : nodes) {
      if (node.op == Op::kCounter) node.value = 0;
    }
    return seen_
        .emplace(decision.entry, decision.becomes, std::move(nodes), decision.left, decision.right)
        .second;
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

  /// The branch or selection that `predicate` decides, alone or with others, or null.
  static const Instruction* BranchOf(const ptx::Function& function, ptx::RegisterIndex predicate,
                                     std::uint32_t at) {
    constexpr std::uint32_t kFar = 64;
    std::set<ptx::RegisterIndex> deciding = {predicate};
    const auto decides = [&](const Operand& operand) {
      return operand.kind == Operand::Kind::kRegister && deciding.contains(operand.reg);
    };
    for (std::uint32_t i = at + 1; i < function.body.size() && i < at + kFar; ++i) {
      const Instruction& in = function.body[i];
      if (in.opcode == Opcode::kBra && in.guard.present && deciding.contains(in.guard.predicate))
        return &in;
      if (in.opcode == Opcode::kSelp && decides(in.operands.back())) return &in;
      const bool combines = in.type() == ptx::Type::kPred && in.operands.size() > 1 &&
                            in.operands[0].kind == Operand::Kind::kRegister;
      if (combines && std::any_of(in.operands.begin() + 1, in.operands.end(), decides))
        deciding.insert(in.operands[0].reg);
    }
    return nullptr;
  }

  const ptx::Module& module_;
  const Origins& origins_;
  const SiteFinder& sites_;
  Facts& facts_;
  struct Compared {
    Decision decision;
    bool ends_loop = false;  ///< By whether it goes round again.
  };
  std::vector<std::vector<Compared>> compared_;  ///< By kernel.
  std::vector<Decision> others_;                 ///< Limits, and what becomes an integer.
  std::size_t limits_ = 0, rounded_ = 0;
  std::uint64_t work_ = 0;
  std::set<
      std::tuple<std::string, Decision::Becomes, std::vector<Node>, std::uint32_t, std::uint32_t>>
      seen_;
};

}  // namespace

void FindDecisions(const ptx::Module& module, const Origins& origins, const SiteFinder& sites,
                   Facts& facts) {
  DecisionWalk(module, origins, sites, facts).Run();
}

}  // namespace assay::facts
