// What a value of a program is computed from, as Node lists (facts.h).
//
// From an operand the definitions that reach it are followed backwards. Where several reach, the value
// is either counted up in a loop (one of them adds to it) or depends on the way taken (the first two
// ways are kept). What a counter in global memory gave counts as the number of the block, and what is
// stored at one place of shared memory and loaded by name as what was stored. What comes from elsewhere
// (other lanes, calls) is given up, and so is what takes too many steps. Internal to facts/.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "validator/ptx/facts/compute_impl.h"

namespace assay::facts {

/// The type that values of a PTX type are computed in, if any.
std::optional<Node::Type> NodeTypeOf(ptx::Type type);

/// The flow of one entry, looked at from its ends.
class BackwardFlow {
 public:
  explicit BackwardFlow(const ptx::Function& function);

  /// The definitions of `reg` that reach instruction `at`; empty where that takes too long.
  std::vector<std::uint32_t> Reaching(ptx::RegisterIndex reg, std::uint32_t at,
                                      std::uint64_t& work) const;

  /// The innermost loop around instruction `at`, numbered by where its jump back leads, from 1; 0:
  /// none. By the order of the text.
  std::uint32_t LoopOf(std::uint32_t at) const;

  /// Is `at` the last instruction of a loop, from where it goes round again?
  bool EndsLoop(std::uint32_t at) const {
    return std::ranges::any_of(loops_, [&](const auto& loop) { return loop.second == at; });
  }

 private:
  void Define(const ptx::Operand& operand, std::uint32_t at);

  const ptx::Function& function_;
  std::vector<std::vector<std::uint32_t>> before_;
  std::vector<std::vector<std::uint32_t>> defines_;
  std::map<std::uint32_t, std::uint32_t> loops_;  ///< By first instruction: the last.
};

/// Builds the nodes of one decision.
class Slice {
 public:
  Slice(const ptx::Module& module, std::uint32_t function, const BackwardFlow& flow,
        const Origins& origins, std::uint64_t& work)
      : module_(module),
        function_(module.functions[function]),
        number_(function),
        flow_(flow),
        origins_(origins),
        work_(work),
        begun_(work) {}

  using Number = std::optional<std::uint32_t>;

  /// What `operand`, read as `type` by instruction `at`, is computed from.
  Number Of(const ptx::Operand& operand, Node::Type type, std::uint32_t at);

  Number Constant(std::int64_t value, Node::Type type) {
    return Add({Node::Op::kConstant, type, value, {}});
  }
  Number Compute(Node::Op op, Node::Type type, std::vector<std::uint32_t> of);

  /// The nodes that `left` and `right` need, in order.
  void Finish(std::uint32_t left, std::uint32_t right, Decision& decision) const;

 private:
  Number Add(Node node);
  Number Immediate(const ptx::Operand& operand, Node::Type type);
  Number Special(const ptx::Operand& operand);
  Number Register(ptx::RegisterIndex reg, std::uint32_t at);
  /// What several definitions give.
  Number Met(ptx::RegisterIndex reg, const std::vector<std::uint32_t>& definitions);
  bool Contains(std::uint32_t node, std::uint32_t part) const;
  /// The value that instruction `at` gives to `reg`.
  Number Result(ptx::RegisterIndex reg, std::uint32_t at);
  Number Computed(const ptx::Instruction& in, Node::Type type, std::uint32_t at);
  Number Wide(std::uint32_t left, std::uint32_t right, Node::Type type);
  Number Fused(const ptx::Instruction& in, Node::Type type, std::uint32_t at);
  Number Compared(const ptx::Instruction& in, std::uint32_t at);
  /// Moves between registers of numbers and of bits keep what was loaded a number.
  Number Moved(const ptx::Instruction& in, Node::Type type, std::uint32_t at);
  Number Converted(const ptx::Instruction& in, Node::Type to, std::uint32_t at);
  Number Loaded(const ptx::Instruction& in, ptx::RegisterIndex reg, std::uint32_t at);
  Number HandedOn(const ptx::Instruction& in, ptx::RegisterIndex reg);
  Number Ticket(const ptx::Instruction& in, Node::Type type, std::uint32_t at);

  const ptx::Module& module_;
  const ptx::Function& function_;
  std::uint32_t number_;
  const BackwardFlow& flow_;
  const Origins& origins_;
  std::uint64_t& work_;
  std::uint64_t begun_;  ///< Of the work: what was done before this decision.
  std::vector<Node> nodes_;
  std::map<Node, std::uint32_t> numbers_;
  using Key = std::pair<ptx::RegisterIndex, std::vector<std::uint32_t>>;
  std::vector<std::map<Key, Number>> known_{
      1};  ///< Outside of all meetings, and within each open one.
  std::map<Key, std::uint32_t> meetings_;
  std::int64_t next_mark_ = 0;
  std::size_t depth_ = 0;
};

}  // namespace assay::facts
