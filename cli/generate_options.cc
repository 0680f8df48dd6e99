#include "cli/generate_options.h"

#include "cli/command.h"

namespace assay::cli {

models::ModelSpec ModelOf(const ModelOptions& options) {
  models::ModelSpec model = options.spec;
  model.key_file = options.key_file;
  model.temperature = options.temperature;
  return model;
}

loop::StrategyOptions StrategyOf(const StrategyWords& words) {
  loop::StrategyOptions strategy = words.options;
  const auto kind = loop::ParseStrategyKind(words.name);
  ASSAY_CHECK(kind, "the parser lets only known words through");
  strategy.kind = *kind;
  return strategy;
}

void AddModelOptions(CLI::App& command, ModelOptions& options) {
  models::ModelSpec& model = options.spec;
  const auto add = [&command](const char* name, auto& value, const char* what) {
    return command.add_option(name, value, what)->group("Model");
  };
  add("--model", model.spec,
      "openai/MODEL, anthropic/MODEL, exec/COMMAND or replay/FILE. Default: the op's transcript.");
  add("--exec-env", model.exec_variables,
      "Variable that an exec/ program gets besides PATH, HOME, locale, proxies and the like.")
      ->allow_extra_args(false);
  add("--base-url", model.base_url, "Server of an OpenAI-compatible or Anthropic API.");
  add("--key-file", options.key_file, "File that holds the API key alone.");
  add("--temperature", options.temperature, "Default: the server's.")->check(NumberFrom(0, 2));
  add("--max-output-tokens", model.max_output_tokens, "Of one reply.")
      ->check(CLI::Range(256, 1 << 20));
  add("--connect-seconds", model.connect_seconds, "Time to connect.")->check(CLI::Range(1, 3600));
  add("--idle-seconds", model.idle_seconds, "Time without a byte.")->check(CLI::Range(1, 86400));
  add("--total-seconds", model.total_seconds, "Time for one try of a request.")
      ->check(CLI::Range(1, 86400));
  add("--tries", model.tries, "Of one request, with growing waits between them.")
      ->check(CLI::Range(1, 100));
}

void AddSignOption(CLI::App& command, std::string& key_file) {
  command.add_option(
      "--sign-key", key_file,
      "Private key (PEM, Ed25519, chmod 600) that signs vetted folders; assay verify "
      "--key checks it.");
}

Result<std::shared_ptr<const runs::SigningKey>> SignerOf(const std::string& key_file) {
  if (key_file.empty()) return nullptr;
  ASSAY_TRY(runs::SigningKey key, runs::SigningKey::Load(key_file));
  return std::make_shared<const runs::SigningKey>(std::move(key));
}

void AddStrategyOptions(CLI::App& command, StrategyWords& words) {
  loop::StrategyOptions& strategy = words.options;
  const auto add = [&command](const char* name, auto& value, const char* what) {
    return command.add_option(name, value, what)->group("Strategy");
  };
  add("--strategy", words.name, "refine, sample, restart or beam.")
      ->check(CLI::IsMember({"refine", "sample", "restart", "beam"}));
  add("--attempts", strategy.attempts, "Candidates to judge at most.")->check(CLI::Range(1, 10000));
  add("--samples", strategy.samples, "Independent first attempts.")->check(CLI::Range(1, 1000));
  add("--width", strategy.width, "beam: lines kept.")->check(CLI::Range(1, 1000));
  add("--depth", strategy.depth, "beam: attempts of a line before it is given up (0: no limit).")
      ->check(CLI::Range(0, 1000));
  add("--stagnation", strategy.stagnation,
      "restart: attempts without progress before a new conversation.")
      ->check(CLI::Range(1, 1000));
  command
      .add_flag("--optimize", strategy.optimize,
                "After acceptance go on for speed; the accepted kernel stays as the floor.")
      ->group("Strategy");
}

}  // namespace assay::cli
