#include "sandbox/wire.h"

#include <array>

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

}  // namespace assay::sandbox
