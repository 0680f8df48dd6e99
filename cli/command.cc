#include "cli/command.h"

#include <cstdio>

namespace assay::cli {

int ExitCode(const Error& error) {
  switch (error.kind) {
    case ErrorKind::kUsage:
    case ErrorKind::kEnvironment:
    case ErrorKind::kMalformedInput:
    case ErrorKind::kNetwork: return kExitEnvironment;
    case ErrorKind::kUnsupported:
    case ErrorKind::kLimit: return kExitInconclusive;
    case ErrorKind::kInternal: return kExitInternal;
  }
  return kExitInternal;
}

void Say(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  if (!text.ends_with('\n')) std::fputc('\n', stderr);
}

void PrintJson(const Json& document) {
  const std::string text = PrettyJson(document);
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

Json ErrorJson(const Error& error) {
  return {{"error",
           {{"kind", Name(error.kind)},
            {"message", error.message},
            {"place", error.place},
            {"fix", error.cure}}}};
}

}  // namespace assay::cli
