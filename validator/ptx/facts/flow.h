// The shape of a program: which instructions of a function lie on a common cycle, and which functions
// call which.
//
// Cycles are the strongly connected components of the control-flow graph (Tarjan 1972), whatever the
// order in which a compiler laid out its blocks. Cost: linear. Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "validator/ptx/control_flow.h"
#include "validator/ptx/module.h"

namespace assay::facts {

/// The number of each node's strongly connected component, numbered from 1; 0 for a node on no
/// cycle. `successors[i]` are the nodes that follow node i.
std::vector<std::uint32_t> Cycles(std::span<const std::vector<std::uint32_t>> successors);

/// Does it read a parameter of the kernel, which stays what it is? Not what a call returns, which lies in the same space.
bool ReadsKernelParameter(const ptx::Function& function, const ptx::Instruction& in);

/// Loops that end when memory has changed.
struct Polling {
  std::vector<ptx::InstructionIndex> reads;  ///< Instructions that read it, ascending.
  std::vector<ptx::InstructionIndex>
      perhaps;           ///< Those that read it where there may be such a loop, or another one.
  bool unknown = false;  ///< What ends a loop went out of sight: through a call, local memory, or
                         ///< loops nested deeper than is looked at.
};
/// Inner loops are those that are left when the entries of the outer one are taken away (Steensgaard
/// 1993), so that a wait inside of a persistent loop is one.
Polling PollingOf(const ptx::Function& function);

struct CallGraph {
  std::vector<std::vector<std::uint32_t>> callees;  ///< By function, ascending.
  std::vector<bool> unknown;                        ///< Calls something that is not to be seen.
  std::vector<bool> recursive;                      ///< On a cycle of calls.
  /// `function` and all that it reaches.
  std::vector<std::uint32_t> Reached(std::uint32_t function) const;
};
CallGraph CallsOf(const ptx::Module& module);

}  // namespace assay::facts
