#include "sandbox/wire.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace assay::sandbox {
namespace {

constexpr std::array kKinds{ErrorKind::kUsage,          ErrorKind::kEnvironment,
                            ErrorKind::kMalformedInput, ErrorKind::kUnsupported,
                            ErrorKind::kNetwork,        ErrorKind::kLimit,
                            ErrorKind::kInternal};

std::string TextOf(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : std::string{};
}

}  // namespace

Json ErrorToJson(const Error& error) {
  return {{"kind", Name(error.kind)},
          {"message", error.message},
          {"place", error.place},
          {"cure", error.cure}};
}

Error ErrorFromJson(const Json& json) {
  if (!json.is_object())
    return {ErrorKind::kInternal, "a worker sent an unreadable error", "worker", {}};
  Error error{ErrorKind::kInternal, TextOf(json, "message"), TextOf(json, "place"),
              TextOf(json, "cure")};
  const std::string kind = TextOf(json, "kind");
  for (const ErrorKind candidate : kKinds) {
    if (Name(candidate) == kind) error.kind = candidate;
  }
  return error;
}

std::string Quoted(std::string_view words) {
  constexpr std::size_t kMost = 600;
  std::string line = OneLine(words, kMost);
  std::ranges::replace(line, '"', '\'');
  return '"' + line + '"';
}

Error OfWorker(const Error& said, std::string_view worker) {
  const std::string place = "worker " + std::string(worker);
  const std::string words = said.place.empty() ? said.message : said.place + ": " + said.message;
  // What callers tell apart: a request that cannot be served as it is, and a machine that cannot
  // serve any. Both end with the same exit code.
  if (said.kind == ErrorKind::kUsage || said.kind == ErrorKind::kMalformedInput) {
    return {ErrorKind::kUsage, "it declined the request: " + Quoted(words), place,
            "look at the target, the compiler's options and the plan"};
  }
  return {ErrorKind::kEnvironment, "it could not serve the request: " + Quoted(words), place,
          "`assay doctor` says what works on this machine"};
}

}  // namespace assay::sandbox
