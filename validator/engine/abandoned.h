// Runs that nobody waits for any more.
//
// Who runs ahead of what is taken (campaign/in_order.h) says so once nothing more is taken: then a thread that works
// for him begins no other run. What has begun goes on to its end.
#pragma once

#include <stop_token>

namespace assay::engine {

/// As long as this lives, what this thread asks of an engine fails once `stop` is requested.
class Abandoning {
 public:
  explicit Abandoning(std::stop_token stop);
  ~Abandoning();
  Abandoning(const Abandoning&) = delete;
  Abandoning& operator=(const Abandoning&) = delete;

 private:
  std::stop_token before_;
};

/// Does nobody wait for what this thread does?
bool IsAbandoned();

}  // namespace assay::engine
