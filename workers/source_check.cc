#include "workers/source_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace assay::workers {
namespace {

/// Length of the UTF-8 sequence at the start of `text` (RFC 3629), or 0 if there is none.
std::size_t SequenceLength(std::string_view text) {
  const auto byte = [&text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return lead == 0 ? 0 : 1;  // NUL is no text either.
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  // Overlong forms, surrogates, beyond U+10FFFF.
  const unsigned second = byte(1);
  const bool bad = (lead == 0xe0 && second < 0xa0) || (lead == 0xed && second > 0x9f) ||
                   (lead == 0xf0 && second < 0x90) || (lead == 0xf4 && second > 0x8f);
  return bad ? 0 : length;
}

bool IsText(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = SequenceLength(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

void SkipBlanks(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
}

/// The word after '#' and the rest of the line.
std::pair<std::string_view, std::string_view> Directive(std::string_view line) {
  SkipBlanks(line);
  const std::size_t hash = line.starts_with('#') ? 1 : line.starts_with("%:") ? 2 : 0;
  if (hash == 0) return {};
  line.remove_prefix(hash);
  SkipBlanks(line);
  const std::size_t end =
      std::min(line.find_first_not_of("abcdefghijklmnopqrstuvwxyz_"), line.size());
  return {line.substr(0, end), line.substr(end)};
}

/// The path of an #include that leaves the toolkit's folders, or an empty one.
std::string_view ForbiddenPath(std::string_view line) {
  const auto [word, rest] = Directive(line);
  if (word != "include" && word != "include_next") return {};
  const std::size_t open = rest.find_first_of("\"<");
  if (open == std::string_view::npos) return {};
  std::string_view path = rest.substr(open + 1);
  path = path.substr(0, path.find_first_of("\">"));
  const bool climbs = path == ".." || path.starts_with("../") || path.find("/../") != path.npos;
  return path.starts_with('/') || climbs ? path : std::string_view{};
}

}  // namespace

std::optional<SourceProblem> CheckSource(std::string_view source) {
  for (std::uint32_t number = 1; !source.empty(); ++number) {
    const std::size_t end = std::min(source.find('\n'), source.size());
    const std::string_view line = source.substr(0, end);
    source.remove_prefix(std::min(end + 1, source.size()));
    if (!IsText(line)) return SourceProblem{number, "the source is not UTF-8 text"};
    if (const std::string_view path = ForbiddenPath(line); !path.empty()) {
      return SourceProblem{number,
                           fmt::format("cannot include '{}': only headers of the CUDA Toolkit can "
                                       "be included, by their name",
                                       path)};
    }
  }
  return std::nullopt;
}

}  // namespace assay::workers
