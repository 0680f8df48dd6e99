#include "report/source.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "report/highlight.h"
#include "report/words.h"

namespace assay::report {
namespace {

constexpr std::size_t kMostLines = 1200;
constexpr std::size_t kMostLineBytes = 300;
constexpr std::size_t kMostNotes = 6;  // below one line

Literal ClassOf(TokenKind kind) {
  switch (kind) {
    case TokenKind::kKeyword:
      return "k";
    case TokenKind::kType:
      return "t";
    case TokenKind::kDevice:
      return "d";
    case TokenKind::kNumber:
      return "m";
    case TokenKind::kString:
      return "s";
    case TokenKind::kComment:
      return "c";
    case TokenKind::kDirective:
      return "p";
    case TokenKind::kPlain:
    case TokenKind::kName:
      break;
  }
  return "";
}

Literal ClassOf(MarkKind kind) {
  switch (kind) {
    case MarkKind::kGuilty:
      return "guilty";
    case MarkKind::kOther:
      return "other";
    case MarkKind::kOrigin:
      return "origin";
    case MarkKind::kUnreached:
      return "unreached";
  }
  return "";
}

Html Tokens(const TokenLine& line) {
  Html html;
  std::size_t shown = 0;
  for (const Token& token : line) {
    if (shown + token.text.size() > kMostLineBytes) {
      std::size_t bytes = 0;
      for (const Token& each : line) bytes += each.text.size();
      html += Head(token.text, kMostLineBytes - shown);
      html += E("em", {}, fmt::format(" line cut: {} bytes", bytes));
      break;
    }
    shown += token.text.size();
    const Literal kind = ClassOf(token.kind);
    if (kind.text.empty()) {
      html += token.text;
    } else {
      html += E("i", {{"class", std::string(kind.text)}}, token.text);
    }
  }
  return html;
}

// A line: its number for the style sheet, its tokens, and a newline for who copies.
Html Line(std::string number, std::string_view classes, const TokenLine& tokens) {
  Attributes attributes = {{"data-n", std::move(number)}};
  if (!classes.empty()) attributes.push_back({"class", std::string(classes)});
  return E("span", attributes, Tokens(tokens), "\n");
}

Html Gap(std::size_t lines) {
  return E("span", {{"class", "gap"}, {"data-n", "⋮"}},
           fmt::format("{} more line{}\n", lines, lines == 1 ? "" : "s"));
}

Html Block(const Html& lines) {
  return E("pre", {{"class", "code"}, {"tabindex", "0"}}, E("code", {}, lines));
}

using Marked = std::multimap<std::uint32_t, const Mark*>;

Html MarkedLine(std::uint32_t number, const TokenLine& tokens, const Marked& marked) {
  const auto [first, last] = marked.equal_range(number);
  if (first == last) return Line(fmt::format("{}", number), "", tokens);
  Html html = Line(fmt::format("{}", number), ClassOf(first->second->kind).text, tokens);
  std::size_t notes = 0;
  for (auto mark = first; mark != last && notes < kMostNotes; ++mark) {
    if (mark->second->note.empty()) continue;
    ++notes;
    html += E("span", {{"class", "note " + std::string(ClassOf(mark->second->kind).text)}},
              Head(mark->second->note, 300), "\n");
  }
  return html;
}

Html Lines(const std::vector<TokenLine>& lines, const Marked& marked,
           const std::vector<bool>& shown) {
  Html html;
  std::size_t hidden = 0;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (!shown[i]) {
      ++hidden;
      continue;
    }
    if (hidden > 0) html += Gap(hidden);
    hidden = 0;
    html += MarkedLine(static_cast<std::uint32_t>(i + 1), lines[i], marked);
  }
  if (hidden > 0) html += Gap(hidden);
  return html;
}

Marked MarksByLine(std::span<const Mark> marks) {
  Marked marked;
  for (const Mark& mark : marks) marked.emplace(mark.line, &mark);
  return marked;
}

}  // namespace

Html Excerpt(std::string_view source, std::span<const Mark> marks, std::uint32_t context) {
  const std::vector<TokenLine> lines = Highlight(source);
  std::vector<bool> shown(lines.size(), false);
  std::size_t count = 0;
  for (const Mark& mark : marks) {
    if (mark.line == 0 || mark.line > lines.size()) continue;
    const std::size_t first = mark.line > context ? mark.line - context - 1 : 0;
    const std::size_t last = std::min<std::size_t>(lines.size(), mark.line + context);
    for (std::size_t i = first; i < last && count < kMostLines; ++i) {
      count += !shown[i];
      shown[i] = true;
    }
  }
  if (count == 0) return {};
  // A gap of one line takes the place of that line.
  for (std::size_t i = 1; i + 1 < shown.size(); ++i) {
    if (shown[i - 1] && shown[i + 1]) shown[i] = true;
  }
  return Block(Lines(lines, MarksByLine(marks), shown));
}

Html Listing(std::string_view source, std::span<const Mark> marks) {
  const std::vector<TokenLine> lines = Highlight(source);
  std::vector<bool> shown(lines.size(), false);
  std::fill_n(shown.begin(), std::min(shown.size(), kMostLines), true);
  return Block(Lines(lines, MarksByLine(marks), shown));
}

Html DiffListing(std::span<const Change> changes) {
  // A text can only be highlighted as a whole: what a comment opened lines above counts.
  std::string before, after;
  for (const Change& change : changes) {
    if (change.before > 0) before += std::string(change.text) + "\n";
    if (change.after > 0) after += std::string(change.text) + "\n";
  }
  const std::vector<TokenLine> before_lines = Highlight(before);
  const std::vector<TokenLine> after_lines = Highlight(after);
  Html html;
  std::size_t last_before = 0, last_after = 0, count = 0;
  for (const Hunk& hunk : Hunks(changes, 3)) {
    if (count > kMostLines) {
      html += E("span", {{"class", "gap"}, {"data-n", "⋮"}}, "more changes\n");
      break;
    }
    const std::size_t first = hunk.front().after > 0 ? hunk.front().after : last_after + 1;
    if (first > last_after + 1) html += Gap(first - last_after - 1);
    for (const Change& change : hunk) {
      ++count;
      last_before = std::max(last_before, change.before);
      last_after = std::max(last_after, change.after);
      const bool removed = change.kind == ChangeKind::kRemoved;
      const TokenLine& tokens =
          removed ? before_lines[change.before - 1] : after_lines[change.after - 1];
      html += Line(removed ? "−" : fmt::format("{}", change.after),
                   removed                             ? "removed"
                   : change.kind == ChangeKind::kAdded ? "added"
                                                       : "",
                   tokens);
    }
  }
  if (html.empty()) return E("p", {{"class", "soft"}}, "The source is the same.");
  return Block(html);
}

}  // namespace assay::report
