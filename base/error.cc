#include "base/error.h"

#include <cstdio>
#include <cstdlib>

namespace assay {

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

void CheckFailed(const char* condition, std::string_view message, std::source_location where) {
  std::fprintf(stderr, "%s:%u: internal error: CHECK(%s) failed%s%.*s\n", where.file_name(),
               static_cast<unsigned>(where.line()), condition, message.empty() ? "" : ": ",
               static_cast<int>(message.size()), message.data());
  std::fflush(stderr);
  std::abort();
}

}  // namespace assay
