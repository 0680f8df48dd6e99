// Options of the subcommands that ask a model: which model and how, which strategy.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>

#include "agent/loop/generate.h"
#include "agent/models/providers.h"

namespace assay::cli {

struct ModelOptions {
  models::ModelSpec spec;
  std::string key_file;
  std::optional<double> temperature;
};
/// --model, --exec-env, --base-url, --key-file, --temperature, --max-output-tokens, time-outs.
void AddModelOptions(CLI::App& command, ModelOptions& options);
models::ModelSpec ModelOf(const ModelOptions& options);

/// --sign-key.
void AddSignOption(CLI::App& command, std::string& key_file);
/// The key in the file; null where none is named.
Result<std::shared_ptr<const runs::SigningKey>> SignerOf(const std::string& key_file);

struct StrategyWords {
  loop::StrategyOptions options;
  std::string name = "refine";
};
/// --strategy, --attempts, --samples, --width, --depth, --stagnation, --optimize.
void AddStrategyOptions(CLI::App& command, StrategyWords& words);
loop::StrategyOptions StrategyOf(const StrategyWords& words);

}  // namespace assay::cli
