// What a batch shows while it runs. On a terminal: a row an instance that is under way (attempt, gate,
// cases, spend, share of its limit), and a line of totals with the time that is left, written over in
// place; what has ended scrolls away above. Elsewhere: a plain line for each thing that happens.
#pragma once

#include <chrono>
#include <map>
#include <mutex>
#include <string>

#include "batch/executor.h"

namespace assay::cli {

class BatchDisplay final : public batch::Observer {
 public:
  explicit BatchDisplay(const batch::Purse& purse);
  /// Takes the rows away.
  ~BatchDisplay() override;

  void OnBegin(const Path& folder, const batch::Plan& plan, std::size_t todo) override;
  void OnStarted(std::size_t index, const batch::InstanceStarted& event) override;
  void OnNotice(std::size_t index, const loop::Notice& notice) override;
  void OnEnded(std::size_t index, const batch::InstanceEnded& event) override;
  void OnUpToDate(std::size_t index, const batch::InstanceUpToDate& event) override;
  void OnWord(const std::string& word) override;

 private:
  struct Row {
    std::string state = "waiting for the model";
    int attempt = 0;
    int of = 0;
    std::string gate;
    runs::Usage usage;
  };
  using Time = std::chrono::steady_clock::time_point;

  void Line(const std::string& text);  ///< A line that stays.
  void Draw(bool now);
  void Erase();
  std::string Rendered(std::size_t index, const Row& row) const;
  std::string Totals() const;

  const batch::Purse& purse_;
  const batch::Plan* plan_ = nullptr;
  const bool terminal_;
  std::map<std::size_t, Row> rows_;
  std::map<batch::End, std::size_t> ended_;
  std::size_t todo_ = 0;
  std::size_t done_ = 0;
  std::size_t drawn_ = 0;  ///< Lines below which the cursor stands.
  Time began_;
  Time last_{};
};

}  // namespace assay::cli
