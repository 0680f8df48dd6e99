// Where models come from: `PROVIDER/NAME`, a table with one row a provider.
//
// A key goes to its provider's own address only. Behind --base-url stands somebody else's server:
// it gets $ASSAY_API_KEY or the key file, never $OPENAI_API_KEY or $ANTHROPIC_API_KEY.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "agent/models/model.h"
#include "agent/models/secret.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/rng.h"

namespace assay::models {

/// Which model, and how to reach it.
struct ModelSpec {
  std::string spec;      ///< "openai/gpt-5", "anthropic/claude-sonnet-4-5", "exec/my-model --json",
                         ///< "replay/FILE"
  std::string base_url;  ///< Empty: the provider's own.
  Path key_file;         ///< Holds the key alone. Empty: the provider's environment variable.
  /// Names of variables that an exec/ program gets besides the usual ones (ExecEnvironment).
  std::vector<std::string> exec_variables;
  std::uint32_t max_output_tokens = 16384;
  std::optional<double> temperature;
  std::uint32_t connect_seconds = 20;
  std::uint32_t idle_seconds = 120;    ///< Without a byte.
  std::uint32_t total_seconds = 1800;  ///< For one try of one request.
  std::uint32_t tries = 6;             ///< Of one request, with jittered backoff between them.
};

struct ProviderContext {
  Clock& clock;
  VariableReader variable;       ///< Must be set.
  Rng rng;                       ///< For jitter.
  Redactor* redactor = nullptr;  ///< Learns the key. May be null.
};

struct Provider {
  std::string_view name;     ///< "openai"
  std::string_view example;  ///< "openai/gpt-5"
  std::string_view summary;  ///< One line for `assay doctor` and messages.
  Result<std::unique_ptr<Model>> (*make)(const ModelSpec& spec, const std::string& name,
                                         const ProviderContext& context);
};

/// All providers, in the order to be shown.
std::span<const Provider> Providers();

/// "openai/gpt-5" -> its row and "gpt-5". Errors name the choices.
struct ParsedSpec {
  const Provider* provider = nullptr;
  std::string name;
};
Result<ParsedSpec> ParseModelSpec(std::string_view spec);

Result<std::unique_ptr<Model>> MakeModel(const ModelSpec& spec, const ProviderContext& context);

/// "openai/MODEL, anthropic/MODEL, exec/COMMAND, replay/FILE"
std::string ProviderChoices();

}  // namespace assay::models
