// The models that a service offers: names for its clients, and behind them what its operator set.
//
//   {"schema": "assay.serve_models/1",
//    "models": {"small": {"model": "openai/MODEL", "base_url": "http://localhost:8000/v1",
//                         "attempts": 8, "tokens": 400000, "seconds": 3600, "clients": ["ann"]}}}
//
// A client says a name and nothing else: which program is run, which server is asked, which key is
// sent and what it may cost stand in this file, which only the operator can write. Paths in it are as
// on a command line: relative to where the service was started.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "agent/loop/generate.h"
#include "base/clock.h"
#include "base/file.h"

namespace assay::cli {

struct ServiceModel {
  models::ModelSpec spec;
  int attempts = 8;                              ///< Of one run; a client may ask for fewer.
  loop::Budget budget;                           ///< Of one run.
  std::optional<std::set<std::string>> clients;  ///< Who may ask for it; nothing: everybody.
};

class ServiceModels {
 public:
  /// None.
  ServiceModels() = default;
  /// Each model is made once, so that a missing key or transcript is said at the start.
  static Result<ServiceModels> Load(const Path& file, Clock& clock);

  bool empty() const { return models_.empty(); }
  /// Null where there is none of that name for this client.
  const ServiceModel* Find(const std::string& name, const std::string& client) const;
  /// Those for this client: names and limits.
  Json ShownTo(const std::string& client) const;

 private:
  std::map<std::string, ServiceModel> models_;
};

}  // namespace assay::cli
