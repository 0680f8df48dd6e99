#include "serve/fair_queue.h"

#include <algorithm>

namespace assay::serve {

void FairQueue::Push(const std::string& client, std::uint64_t job) {
  std::deque<std::uint64_t>& own = jobs_[client];
  if (own.empty()) turns_.push_back(client);
  own.push_back(job);
}

std::optional<std::uint64_t> FairQueue::Pop() {
  if (turns_.empty()) return std::nullopt;
  const std::string client = std::move(turns_.front());
  turns_.pop_front();
  const auto own = jobs_.find(client);
  const std::uint64_t job = own->second.front();
  own->second.pop_front();
  if (own->second.empty()) {
    jobs_.erase(own);
  } else {
    turns_.push_back(client);
  }
  return job;
}

bool FairQueue::Remove(const std::string& client, std::uint64_t job) {
  const auto own = jobs_.find(client);
  if (own == jobs_.end()) return false;
  const auto at = std::ranges::find(own->second, job);
  if (at == own->second.end()) return false;
  own->second.erase(at);
  if (own->second.empty()) {
    jobs_.erase(own);
    turns_.erase(std::ranges::find(turns_, client));
  }
  return true;
}

std::size_t FairQueue::size() const {
  std::size_t all = 0;
  for (const auto& [client, own] : jobs_) all += own.size();
  return all;
}

}  // namespace assay::serve
