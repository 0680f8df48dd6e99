// What judges and generates for `assay serve`: one value for all threads of its desk.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "cli/service_models.h"
#include "cli/workbench.h"
#include "runs/judgement.h"
#include "runs/signature.h"
#include "serve/desk.h"

namespace assay::cli {

struct ServiceSettings {
  Path state;
  std::uint64_t seed = 1;
  std::string reward_effort = "standard";
  WorkbenchOptions tools;
  std::map<std::string, std::string> versions;  ///< Workbench::JudgeVersions.
  std::shared_ptr<const runs::SigningKey> signer;
  ServiceModels models;
};

/// Thread-safe, as the workbench is.
class ServiceJudge {
 public:
  /// `bench` must outlive it.
  ServiceJudge(Workbench& bench, ServiceSettings settings);

  /// Whether a request could be judged, before it is taken.
  Status IsFit(const std::string& client, const std::string& kind, const std::string& text) const;
  /// Judges a job, or runs the loop for it. Errors are inconclusive answers.
  serve::Answer operator()(const serve::Call& call);

  const ServiceModels& models() const { return settings_.models; }

 private:
  Result<serve::Answer> Check(const serve::Call& call);
  Result<serve::Answer> Reward(const serve::Call& call);
  Result<serve::Answer> Generate(const serve::Call& call);
  Result<loop::GenerateRequest> RequestOf(const serve::Call& call) const;

  Workbench& bench_;
  const ServiceSettings settings_;
  runs::JudgeFacts facts_;
};

}  // namespace assay::cli
