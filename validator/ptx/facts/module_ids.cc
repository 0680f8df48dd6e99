#include "validator/ptx/facts/module_ids.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>

namespace assay::facts {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsHex(char c) { return IsDigit(c) || (c >= 'a' && c <= 'f'); }

/// Takes so many characters of a kind off the front. False, and `text` is of no use, where they are not there.
bool Take(std::string_view& text, std::size_t count, bool (*is)(char)) {
  if (text.size() < count || !std::ranges::all_of(text.substr(0, count), is)) return false;
  text.remove_prefix(count);
  return true;
}
bool Take(std::string_view& text, char c) {
  if (!text.starts_with(c)) return false;
  text.remove_prefix(1);
  return true;
}

/// How long "00000000_9_kernel_cu_d2b035da_585" is at the front of `text`, where 9 is the length of "kernel_cu"; 0 where there
/// is no such thing. The last number is as long as it can be: a length that follows it belongs to it.
std::size_t IdAt(std::string_view text) {
  constexpr std::size_t kHash = 8;
  const std::size_t all = text.size();
  if (!Take(text, kHash, IsDigit) || !Take(text, '_')) return 0;
  std::size_t length = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), length);
  if (problem != std::errc{}) return 0;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  if (!Take(text, '_') || text.size() <= length) return 0;
  text.remove_prefix(length);
  if (!Take(text, '_') || !Take(text, kHash, IsHex) || !Take(text, '_')) return 0;
  while (!text.empty() && IsDigit(text.front())) text.remove_prefix(1);
  return all - text.size();
}

void AppendWithoutIds(std::string_view line, std::string& to) {
  constexpr std::array<std::string_view, 2> kMarks = {"_INTERNAL_", "_GLOBAL__N__"};
  while (!line.empty()) {
    std::size_t at = line.size();
    std::string_view mark;
    for (const std::string_view each : kMarks) {
      const std::size_t found = line.find(each);
      if (found < at) {
        at = found;
        mark = each;
      }
    }
    to += line.substr(0, at);
    if (mark.empty()) return;
    line.remove_prefix(at + mark.size());
    const std::size_t id = IdAt(line);
    // The name's length stands before it, and hangs on the number's.
    while (id > 0 && !to.empty() && IsDigit(to.back())) to.pop_back();
    to += mark;
    line.remove_prefix(id);
  }
}

std::string_view Trimmed(std::string_view line) {
  const std::size_t first = line.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return line.substr(first, line.find_last_not_of(" \t\r") - first + 1);
}

}  // namespace

std::string WithoutModuleIds(std::string_view ptx) {
  std::string text;
  text.reserve(ptx.size());
  bool in_section = false;
  while (!ptx.empty()) {
    const std::size_t end = std::min(ptx.find('\n'), ptx.size() - 1) + 1;
    const std::string_view line = ptx.substr(0, end);
    ptx.remove_prefix(end);
    const std::string_view trimmed = Trimmed(line.substr(0, line.find('\n')));
    if (!in_section && trimmed.starts_with(".section") &&
        trimmed.find(".debug_") != std::string_view::npos)
      in_section = true;
    if (!in_section) AppendWithoutIds(line, text);
    if (in_section && trimmed.ends_with('}')) in_section = false;
  }
  return text;
}

}  // namespace assay::facts
