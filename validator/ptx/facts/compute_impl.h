// The parts of FactsOf (compute.h). Each fills its members of Facts for a verified module.
#pragma once

#include <string_view>
#include <vector>

#include "validator/ptx/facts/facts.h"
#include "validator/ptx/facts/origins.h"
#include "validator/ptx/module.h"

namespace assay::facts {

class SiteFinder {
 public:
  SiteFinder(const ptx::Module& module, std::string_view own_file);
  Site Of(std::uint32_t function, const ptx::Instruction& in) const;
  /// Site::own_line of it.
  std::uint32_t OwnLine(const ptx::Instruction& in) const;

 private:
  const ptx::Module& module_;
  std::vector<bool> own_;  ///< By file.
};

/// Names of what a value comes from, for people and for Facts.
std::vector<std::string> NamesOf(const ptx::Module& module, const Origins& origins,
                                 const OriginSet& set);

/// The objects that an address may be of; not what is added to it, where that can be told.
OriginSet AddressedBy(const ptx::Module& module, const Origins& origins, std::uint32_t function,
                      const ptx::Operand& address);

/// Facts::memory, atomics, and who writes Facts::variables.
void FindMemory(const ptx::Module& module, const Origins& origins, const SiteFinder& sites,
                Facts& facts);
/// Facts::constants.
void FindConstants(const ptx::Module& module, const SiteFinder& sites, Facts& facts);
/// Facts::decisions (decisions.cc).
void FindDecisions(const ptx::Module& module, const Origins& origins, const SiteFinder& sites,
                   Facts& facts);
/// Loops, calls, barriers and dependence of blocks, in Facts::functions.
void FindFlow(const ptx::Module& module, const Origins& origins, Facts& facts);

}  // namespace assay::facts
