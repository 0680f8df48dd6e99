// Progress for people: one live line on a terminal, plain lines otherwise.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <thread>

#include "agent/loop/generate.h"
#include "validator/gates/gatekeeper.h"

namespace assay::cli {

class ProgressPrinter {
 public:
  ProgressPrinter();
  void On(const loop::Notice& notice);
  void On(const gates::Progress& progress);
  /// Clears the live line.
  void Finish();
  /// Replaces the live line, where there is a terminal.
  void Live(std::string_view text);

 private:
  using Time = std::chrono::steady_clock::time_point;

  void Line(std::string_view text);  ///< A line that stays.

  bool terminal_;
  std::set<std::string> named_gates_;  ///< Where there is no terminal to write over.
  std::string prefix_;
  Time asked_ = {};  ///< When the model was last asked.
};

/// For work that does not tell how far it is: counts its seconds on the live line, from the first.
class Elapsed {
 public:
  explicit Elapsed(std::string what);
  ~Elapsed();
  Elapsed(const Elapsed&) = delete;
  Elapsed& operator=(const Elapsed&) = delete;

 private:
  ProgressPrinter printer_;
  std::mutex mutex_;
  std::condition_variable_any ended_;
  std::jthread thread_;  // the last member: it uses the others
};

}  // namespace assay::cli
