// What compute-sanitizer's tools say, read: text for people becomes findings of the device gate.
//
//   const ToolWords words = ReadToolWords("memcheck", text, {.partial_copies = false});
//   if (!words.complete) LeaveOut(...);      // it did not come to its end: nothing is known
//
// Only words that are known count, and not all of those: two kinds are said of kernels that are right
// (docs/sanitizers.md), and refute nothing. What a GPU's vendor calls a warning refutes nothing
// either. Pure; no cost.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "validator/findings/finding.h"

namespace assay::gates {

struct ToolContext {
  /// The kernel copies asynchronously (cp.async): such a copy may name more bytes than it reads, which
  /// memcheck takes for a read of all of them.
  bool partial_copies = false;
};

struct ToolWords {
  bool complete = false;  ///< The tool's summary is there.
  std::vector<Finding> findings;
};

ToolWords ReadToolWords(std::string_view tool, std::string_view text, const ToolContext& context);

}  // namespace assay::gates
