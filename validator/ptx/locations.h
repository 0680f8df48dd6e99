// Builds Module::locations from .loc directives.
//
// `.loc file line column, function_name L, inlined_at file line column` names its call site by
// position: the latest .loc of this function with that position, which may itself be inlined.
// Function names are labels of the .debug_str section, which usually comes last; so names are
// filled in, and unused locations dropped, when the module is complete. Afterwards a location
// stands behind the call site that it was inlined at, and locations are in the order of first use.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "validator/ptx/module.h"

namespace assay::ptx {

/// Names of files and functions reach terminals: control characters become `?`.
std::string WithoutControls(std::string_view text);

struct LinePosition {
  std::uint32_t file = 0;
  std::uint32_t line = 0;
  std::uint32_t column = 0;
  auto operator<=>(const LinePosition&) const = default;
};

class LocationBuilder {
 public:
  /// Call sites are looked for within one function.
  void StartFunction() { latest_.clear(); }
  /// Index to use in Instruction::location until Finish.
  std::int32_t Add(LinePosition position);
  /// `label` and `offset` name a string of .debug_str.
  std::int32_t AddInlined(LinePosition position, std::string_view label, std::uint64_t offset,
                          LinePosition call_site);

  /// Contents of .debug_str, as they are read.
  void AddDebugLabel(std::string_view label) { labels_.try_emplace(label, debug_text_.size()); }
  void AddDebugByte(char byte) { debug_text_.push_back(byte); }

  /// Fills Module::locations and renumbers Instruction::location.
  void Finish(Module& module) const;

 private:
  struct Raw {
    LinePosition position;
    std::int32_t inlined_at = -1;
    std::string_view label;
    std::uint64_t offset = 0;
    auto operator<=>(const Raw&) const = default;
  };
  std::int32_t Intern(const Raw& raw);
  std::string FunctionName(const Raw& raw) const;

  std::vector<Raw> raw_;
  std::map<Raw, std::int32_t> known_;
  std::map<LinePosition, std::int32_t> latest_;
  std::unordered_map<std::string_view, std::size_t> labels_;
  std::string debug_text_;
};

}  // namespace assay::ptx
