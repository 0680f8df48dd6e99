#include "agent/models/providers.h"

#include <fmt/format.h>

#include <string_view>
#include <vector>

#include "agent/models/exec_model.h"
#include "agent/models/http_model.h"
#include "agent/models/replay_model.h"

namespace assay::models {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr const char* kForeignKeyVariable = "ASSAY_API_KEY";

Status CheckBaseUrl(const std::string& url) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    const bool host = url.size() > scheme.size() && url[scheme.size()] != '/';
    if (url.empty() || (url.starts_with(scheme) && host)) return {};
  }
  return Fail(ErrorKind::kUsage, "'" + PublicUrl(url) + "' is not an http or https address",
              "--base-url", "write it in full, e.g. http://localhost:8000/v1");
}

/// A service that is HTTP with JSON.
template <const Protocol& (*kProtocol)()>
Result<std::unique_ptr<Model>> MakeHttp(const ModelSpec& spec, const std::string& name,
                                        const ProviderContext& context) {
  const Protocol& protocol = kProtocol();
  ASSAY_TRY_VOID(CheckBaseUrl(spec.base_url));
  const bool home = spec.base_url.empty() || spec.base_url.starts_with(protocol.home);
  const std::vector<std::string> variables =
      home ? protocol.key_variables : std::vector<std::string>{kForeignKeyVariable};
  HttpModelOptions options;
  ASSAY_TRY(options.key, FindKey(spec.key_file, variables, context.variable));
  if (home && options.key.empty()) {
    return Fail(
        ErrorKind::kUsage, fmt::format("no key for {}", protocol.home), "$" + variables.front(),
        fmt::format(
            "set {} or name a file with --key-file; a server of your own is named with --base-url",
            variables.front()));
  }
  if (context.redactor != nullptr) context.redactor->Add(options.key);
  options.model = name;
  options.base_url = spec.base_url;
  options.key_hint =
      home ? fmt::format("check the key in {}", variables.front())
           : fmt::format("set {} or name a file with --key-file; {} is sent to {} alone",
                         kForeignKeyVariable, protocol.key_variables.front(), protocol.home);
  // Servers other than OpenAI's own know the older name of the limit.
  options.dialect.old_token_limit = !home;
  options.connect_timeout = seconds(spec.connect_seconds);
  options.idle_timeout = seconds(spec.idle_seconds);
  options.total_timeout = seconds(spec.total_seconds);
  options.tries = spec.tries;
  Path ca_bundle;
  for (const char* const variable : {"ASSAY_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"}) {
    if (const auto value = context.variable(variable); value && ca_bundle.empty())
      ca_bundle = *value;
  }
  ASSAY_TRY(std::unique_ptr<Transport> transport, MakeCurlTransport(ca_bundle));
  return std::make_unique<HttpModel>(protocol, std::move(options), std::move(transport),
                                     context.clock, context.rng);
}

Result<std::unique_ptr<Model>> MakeExec(const ModelSpec& spec, const std::string& name,
                                        const ProviderContext& context) {
  ASSAY_TRY(std::vector<std::string> environment,
            ExecEnvironment(context.variable, spec.exec_variables));
  return MakeExecModel({.command = name,
                        .environment = std::move(environment),
                        .total_timeout = seconds(spec.total_seconds)},
                       context.clock);
}

Result<std::unique_ptr<Model>> MakeReplay(const ModelSpec&, const std::string& name,
                                          const ProviderContext&) {
  ASSAY_TRY(runs::Transcript transcript, runs::ReadTranscript(name));
  return std::make_unique<ReplayModel>(std::move(transcript), name);
}

constexpr Provider kProviders[] = {
    {"openai", "openai/gpt-5", "OpenAI, and every server that speaks chat completions (--base-url)",
     &MakeHttp<OpenAiProtocol>},
    {"anthropic", "anthropic/claude-sonnet-4-5", "Anthropic messages",
     &MakeHttp<AnthropicProtocol>},
    {"exec", "exec/COMMAND", "a program: prompt on standard input, reply on standard output",
     &MakeExec},
    {"replay", "replay/FILE", "a transcript, offline and free", &MakeReplay},
};

}  // namespace

std::span<const Provider> Providers() { return kProviders; }

std::string ProviderChoices() {
  std::string choices;
  for (const Provider& provider : kProviders) {
    choices += (choices.empty() ? "" : ", ") + std::string(provider.example);
  }
  return choices;
}

Result<ParsedSpec> ParseModelSpec(std::string_view spec) {
  const std::size_t slash = spec.find('/');
  const std::string_view head = spec.substr(0, slash);
  std::vector<std::string> names;
  for (const Provider& provider : kProviders) {
    names.emplace_back(provider.name);
    if (provider.name != head) continue;
    if (slash == std::string_view::npos || slash + 1 == spec.size()) {
      return Fail(ErrorKind::kUsage, "'" + std::string(spec) + "' names no model", "--model",
                  "write it like " + std::string(provider.example));
    }
    return ParsedSpec{&provider, std::string(spec.substr(slash + 1))};
  }
  const std::string nearest = Nearest(head, names);
  return Fail(ErrorKind::kUsage, "unknown provider '" + std::string(head) + "'", "--model",
              (nearest.empty() ? "" : "did you mean '" + nearest + "/...'? ") +
                  "choices: " + ProviderChoices());
}

Result<std::unique_ptr<Model>> MakeModel(const ModelSpec& spec, const ProviderContext& context) {
  ASSAY_TRY(const ParsedSpec parsed, ParseModelSpec(spec.spec));
  return parsed.provider->make(spec, parsed.name, context);
}

}  // namespace assay::models
