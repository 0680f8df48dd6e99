#include "base/error.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "base/check.h"

namespace assay {
namespace {

std::atomic<bool> checks_throw = false;

}  // namespace

std::string ToString(const Error& error) {
  std::string text;
  if (!error.place.empty()) text += error.place + ": ";
  text += error.message;
  if (!error.cure.empty()) text += "\n  fix: " + error.cure;
  return text;
}

std::string_view Name(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kUsage:
      return "usage";
    case ErrorKind::kEnvironment:
      return "environment";
    case ErrorKind::kMalformedInput:
      return "malformed_input";
    case ErrorKind::kUnsupported:
      return "unsupported";
    case ErrorKind::kNetwork:
      return "network";
    case ErrorKind::kLimit:
      return "limit";
    case ErrorKind::kInternal:
      return "internal";
  }
  return "internal";
}

Error WithPlace(Error error, std::string_view place) {
  error.place = error.place.empty() ? std::string(place) : std::string(place) + ": " + error.place;
  return error;
}

void ThrowOnFailedChecks() { checks_throw = true; }

void CheckFailed(const char* condition, std::string_view message, std::source_location where) {
  const std::string text = std::string(where.file_name()) + ":" + std::to_string(where.line()) +
                           ": internal error: CHECK(" + condition + ") failed" +
                           (message.empty() ? "" : ": ") + std::string(message);
  if (checks_throw) throw CheckFailure(text);
  std::fprintf(stderr, "%s\n", text.c_str());
  std::fflush(stderr);
  std::abort();
}

}  // namespace assay
