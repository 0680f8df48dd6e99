// What a loop around a compare-and-swap (or a pair of exchanges) makes of the value that it found.
//
// `do { seen = old; old = atomicCAS(at, seen, bits(value(seen) + v)); } while (old != seen)` is a
// float addition that the instruction set has no atomic for. The instructions between the value
// that was found and the one that is put in its place are a function of one argument, with what else
// they read held fixed: a lane's *update*. Here the instructions are found, a lane's other inputs
// are kept, and the function is computed for other arguments, by the handlers of those very
// instructions. Whoever has the updates of several threads can carry them out in other orders
// (contention.h).
//
// An update is found where
//   - the value to compare with is a register, or a copy of one: the value that was found; for an
//     exchange, it is the result of an earlier exchange at the same address;
//   - the new value comes of it by instructions that only compute, on a straight line without labels,
//     one of them on floats, none of them predicated.
// Others are no updates: locks, lists, integer extremes.
//
// Cost: a walk over a few instructions, once for each instruction that swaps. Not thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "validator/emu/core.h"

namespace assay::emu {

class Updates {
 public:
  using Value = std::array<std::byte, 8>;

  explicit Updates(const Device& device) : device_(device) {}

  /// True where the instruction at `pc`, a compare-and-swap or an exchange, ends an update.
  bool IsUpdate(std::uint32_t pc) { return Find(pc) != nullptr; }
  /// The value that `lane` found, before the instruction at `pc` is carried out.
  Value Found(CoreWarp& warp, std::uint32_t pc, int lane);
  /// What else the lane's update reads.
  std::vector<Value> Inputs(CoreWarp& warp, std::uint32_t pc, int lane);
  /// What an update with these inputs makes of `found`. Leaves the warp as it was.
  Value Apply(CoreWarp& warp, std::uint32_t pc, const std::vector<Value>& inputs,
              const Value& found);

 private:
  struct Update {
    std::vector<std::uint32_t> body;         ///< In program order.
    std::vector<DecodedOperand> inputs;      ///< Registers and predicates.
    std::vector<DecodedOperand> overwrites;  ///< By the body.
    DecodedOperand found;
    DecodedOperand result;
  };
  const Update* Find(std::uint32_t pc);
  std::optional<Update> Derive(std::uint32_t pc) const;
  /// Does a branch lead there?
  bool IsLabel(std::uint32_t pc) const;

  const Device& device_;
  std::unordered_map<std::uint32_t, std::optional<Update>> known_;
};

}  // namespace assay::emu
