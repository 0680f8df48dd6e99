// Generating: a model is asked for a kernel until one passes every gate, or a limit is reached.
//
//   auto generated = Generate(Environment::Installed(), {.question = {.op = "rms_norm"},
//                                                        .model = {.name = "openai/gpt-5", .key_file = "key"}});
//   if (generated && generated->vetted) Use(*generated->vetted);
//
// Everything that happens is in the run's folder before it is told; a process killed at any instruction leaves a run that
// `assay generate --resume` continues.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "assay/environment.h"
#include "assay/error.h"
#include "assay/judge.h"

namespace assay::api {

struct Model {
  std::string name;      ///< "openai/MODEL", "anthropic/MODEL", "exec/COMMAND", "replay/FILE"
  std::string base_url;  ///< A server of the same protocol; empty: the provider's own.
  /// Holds the key alone. Empty: `variables` has it.
  std::filesystem::path key_file;
  /// What providers and exec/ programs find where they look for variables: OPENAI_API_KEY, PATH. The process's own are not read.
  std::map<std::string, std::string> variables;
  std::optional<double> temperature;
};

struct GenerateRequest {
  Question question;
  Model model;
  int attempts = 8;       ///< Candidates judged at most.
  double budget_usd = 0;  ///< 0: no limit. So below.
  std::uint64_t budget_tokens = 0;
  std::uint64_t budget_seconds = 0;
  std::filesystem::path out;  ///< The run's folder. Empty: runs/<id> in the working directory.
  JudgeOptions judge;
};

struct Generated {
  Outcome outcome = Outcome::kInconclusive;
  std::string reason;
  std::filesystem::path run;
  std::optional<std::filesystem::path> vetted;  ///< The emitted kernel's folder.
  int attempts = 0;
  bool resumable = false;  ///< A limit ended it, or `interrupted` did.
};

struct Watching {
  std::function<void(const Progress&)> progress;  ///< Of judgements. May be empty.
  /// Asked now and then: end the run, so that it can be resumed? May be empty.
  std::function<bool()> interrupted;
};

Result<Generated> Generate(const Environment& environment, const GenerateRequest& request,
                           const Watching& watching = {});

}  // namespace assay::api
