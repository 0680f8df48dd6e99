// Jobs in the order in which they run: clients take turns, and each client's own jobs run in the
// order in which they came. One who submits a thousand delays another by one job, not by a thousand.
//
// A value; not thread-safe. Cost: logarithmic in the number of clients, but for Remove.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>

namespace assay::serve {

class FairQueue {
 public:
  void Push(const std::string& client, std::uint64_t job);
  /// The first job of the client whose turn it is.
  std::optional<std::uint64_t> Pop();
  bool Remove(const std::string& client, std::uint64_t job);
  std::size_t size() const;

 private:
  std::map<std::string, std::deque<std::uint64_t>> jobs_;  ///< Only clients that have some.
  std::deque<std::string> turns_;                          ///< The same clients.
};

}  // namespace assay::serve
