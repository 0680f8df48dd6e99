#include "cli/command.h"

#include <fmt/format.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>

namespace assay::cli {
namespace {

// Bytes of the control character that `text` begins with; 0 where it begins with none. New lines
// and tabs are text.
std::size_t ControlAt(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  if (text[0] == '\n' || text[0] == '\t') return 0;
  if (byte(0) < 0x20 || byte(0) == 0x7f) return 1;
  if (byte(0) == 0xc2 && byte(1) >= 0x80 && byte(1) < 0xa0) return 2;  // C1
  // Overrides of the writing direction show a text in another order than it has.
  if (byte(0) == 0xe2 && ((byte(1) == 0x80 && byte(2) >= 0xaa && byte(2) <= 0xae) ||
                          (byte(1) == 0x81 && byte(2) >= 0xa6 && byte(2) <= 0xa9))) {
    return 3;
  }
  return 0;
}

}  // namespace

int ExitCode(const Error& error) {
  switch (error.kind) {
    case ErrorKind::kUsage:
    case ErrorKind::kEnvironment:
    case ErrorKind::kMalformedInput:
    case ErrorKind::kNetwork:
      return kExitEnvironment;
    case ErrorKind::kUnsupported:
    case ErrorKind::kLimit:
      return kExitInconclusive;
    case ErrorKind::kInternal:
      return kExitInternal;
  }
  return kExitInternal;
}

std::string Printable(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const std::size_t control = ControlAt(text);
    result += control > 0 ? "\xef\xbf\xbd" : std::string_view(text.substr(0, 1));
    text.remove_prefix(std::max<std::size_t>(control, 1));
  }
  return result;
}

void Say(std::string_view raw) {
  const std::string text = Printable(raw);
  std::fwrite(text.data(), 1, text.size(), stderr);
  if (!text.ends_with('\n')) std::fputc('\n', stderr);
}

Status PrintJson(const Json& document) {
  const std::string text = PrettyJson(document);
  errno = 0;
  const bool written =
      std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  if (written || errno == EPIPE) return {};
  return Fail(ErrorKind::kEnvironment,
              fmt::format("cannot write the JSON document: {}", std::strerror(errno)),
              "standard output", "check free space where it leads");
}

CLI::Validator WholeNumber() {
  return CLI::Validator(
      [](std::string& text) -> std::string {
        std::uint64_t value = 0;
        const char* const end = text.data() + text.size();
        const auto [stop, error] = std::from_chars(text.data(), end, value);
        if (error == std::errc() && stop == end) return {};
        return fmt::format("'{}' is not a whole number from 0 to 2^64 - 1", text);
      },
      "");
}

CLI::Validator NumberFrom(double low, double high) {
  return CLI::Validator(
      [low, high](std::string& text) -> std::string {
        double value = 0;
        const char* const end = text.data() + text.size();
        const auto [stop, error] = std::from_chars(text.data(), end, value);
        if (error == std::errc() && stop == end && value >= low && value <= high) return {};
        return fmt::format("'{}' is not a number from {} to {}", text, low, high);
      },
      "");
}

Json ErrorJson(const Error& error) {
  return {{"error",
           {{"kind", Name(error.kind)},
            {"message", error.message},
            {"place", error.place},
            {"fix", error.cure}}}};
}

}  // namespace assay::cli
