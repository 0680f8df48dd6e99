// Joins the resolver tables of the instruction families (handlers/rows.h).
#pragma once

#include <array>

#include "validator/emu/exec.h"

namespace assay::emu {

class ResolverTable {
 public:
  ResolverTable();

  /// Sets decoded.run (and monitored, propagate, flags). False when no family covers the
  /// instruction.
  bool Resolve(const ptx::Instruction& instruction, Decoded& decoded) const;

 private:
  std::array<Resolver, 256> resolvers_{};
};

}  // namespace assay::emu
