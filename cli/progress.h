// Progress for people: one live line on a terminal, plain lines otherwise.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "agent/generate.h"
#include "validator/gates/gatekeeper.h"

namespace assay::cli {

class ProgressPrinter {
 public:
  ProgressPrinter();
  void On(const agent::Notice& notice);
  void On(const gates::Progress& progress);
  /// Clears the live line.
  void Finish();

 private:
  void Line(std::string_view text);   ///< A line that stays.
  void Live(std::string_view text);   ///< Replaces the live line (terminals only).

  bool terminal_;
  std::set<std::string> named_gates_;  ///< Where there is no terminal to write over.
  std::string prefix_;
};

}  // namespace assay::cli
