#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>

namespace assay {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";

struct Lead {
  std::size_t length;       // of the whole sequence; 0: not a lead byte
  unsigned char low, high;  // allowed range of the second byte
};

// Unicode 15, table 3-7.
Lead LeadOf(unsigned char byte) {
  if (byte >= 0xc2 && byte <= 0xdf) return {2, 0x80, 0xbf};
  if (byte == 0xe0) return {3, 0xa0, 0xbf};
  if (byte == 0xed) return {3, 0x80, 0x9f};
  if (byte >= 0xe1 && byte <= 0xef) return {3, 0x80, 0xbf};
  if (byte == 0xf0) return {4, 0x90, 0xbf};
  if (byte >= 0xf1 && byte <= 0xf3) return {4, 0x80, 0xbf};
  if (byte == 0xf4) return {4, 0x80, 0x8f};
  return {0, 0, 0};
}

bool IsContinuation(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

// The largest index <= `at` that does not split a character.
std::size_t CharacterStart(std::string_view text, std::size_t at) {
  at = std::min(at, text.size());
  while (at > 0 && at < text.size() && IsContinuation(text[at])) --at;
  return at;
}

}  // namespace

std::string ValidUtf8(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  std::size_t i = 0;
  while (i < bytes.size()) {
    const auto byte = static_cast<unsigned char>(bytes[i]);
    if (byte < 0x80) {
      text += bytes[i++];
      continue;
    }
    const Lead lead = LeadOf(byte);
    std::size_t good = lead.length == 0 ? 0 : 1;
    while (good > 0 && good < lead.length && i + good < bytes.size()) {
      const auto next = static_cast<unsigned char>(bytes[i + good]);
      const unsigned char low = good == 1 ? lead.low : 0x80;
      const unsigned char high = good == 1 ? lead.high : 0xbf;
      if (next < low || next > high) break;
      ++good;
    }
    if (lead.length > 0 && good == lead.length) {
      text += bytes.substr(i, good);
    } else {
      text += kReplacement;
    }
    i += std::max<std::size_t>(good, 1);
  }
  return text;
}

std::string UnixNewlines(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\r') {
      result += text[i];
    } else if (i + 1 == text.size() || text[i + 1] != '\n') {
      result += '\n';
    }
  }
  return result;
}

std::vector<std::string_view> SplitLines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return lines;
}

std::string_view Strip(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n\f\v";
  const std::size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

std::string Shorten(std::string_view text, std::size_t max_bytes) {
  if (text.size() <= max_bytes) return std::string(text);
  constexpr std::size_t kNoteBytes = 64;
  const std::size_t room = max_bytes > kNoteBytes ? max_bytes - kNoteBytes : 0;
  std::size_t head = CharacterStart(text, room - room / 3);
  std::size_t tail = CharacterStart(text, text.size() - room / 3);
  // A line end is the better place to cut, if one is near.
  if (const std::size_t line = text.rfind('\n', head);
      line != std::string_view::npos && head > 0 && line + 1 > head / 2) {
    head = line + 1;
  }
  if (const std::size_t line = text.find('\n', tail);
      line != std::string_view::npos && line + 1 - tail < (text.size() - tail) / 2) {
    tail = line + 1;
  }
  const std::string note = fmt::format("[... {} bytes left out ...]\n", tail - head);
  std::string result(text.substr(0, head));
  if (!result.empty() && result.back() != '\n') result += '\n';
  result += note;
  result += text.substr(tail);
  return result;
}

std::string Head(std::string_view text, std::size_t max_bytes) {
  if (text.size() <= max_bytes) return std::string(text);
  return std::string(text.substr(0, CharacterStart(text, max_bytes))) + "...";
}

std::string OneLine(std::string_view text, std::size_t max_bytes) {
  std::string line;
  bool blank = false;
  for (const char c : text) {
    const bool space = c == ' ' || (c >= '\t' && c <= '\r');
    if (space && blank) continue;
    blank = space;
    line += space ? ' ' : c;
  }
  return Head(ValidUtf8(Strip(line)), max_bytes);
}

}  // namespace assay
