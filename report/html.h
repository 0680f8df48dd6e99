// HTML as values: text is escaped by construction, and names cannot come from data.
//
//   Html cell = E("td", {{"class", "n"}}, fmt::format("{}", count));       // a string becomes text
//   Html row = E("tr", {}, E("th", {}, attempt.reason), cell);              // an Html stays markup
//
// Markup is made by E and Style alone, whose names are literals (Literal's constructor runs in the compiler). Attributes that
// could run or fetch something do not exist: a name that begins with "on", or a link that leads out of the page, is a bug of ours.
// What a text may not hold (control characters, overrides of the writing direction, bytes that are no UTF-8) becomes U+FFFD.
// Linear in what is written. Values; thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace assay::report {

/// A word of ours: only literals convert to it.
struct Literal {
  consteval Literal(const char* literal) : text(literal) {}  // NOLINT(google-explicit-constructor)
  std::string_view text;
};

struct Attribute {
  Literal name;
  std::string value;
};
using Attributes = std::vector<Attribute>;

class Html {
 public:
  Html() = default;
  static Html Text(std::string_view text);

  Html& operator+=(const Html& more) {
    markup_ += more.markup_;
    return *this;
  }
  Html& operator+=(std::string_view text) { return *this += Text(text); }
  bool empty() const { return markup_.empty(); }
  std::size_t bytes() const { return markup_.size(); }
  const std::string& markup() const { return markup_; }

 private:
  friend Html Open(Literal tag, const Attributes& attributes);
  friend Html Element(Literal tag, const Attributes& attributes, const Html& content);
  friend Html Style(Literal css);
  friend Html Document(const Html& head, const Html& body);
  std::string markup_;
};

/// `<tag ...>` of an element that has no content (meta, br).
Html Open(Literal tag, const Attributes& attributes);
Html Element(Literal tag, const Attributes& attributes, const Html& content);

/// An element; its content is a list of Html and of text.
template <class... Content>
Html E(Literal tag, const Attributes& attributes, const Content&... content) {
  Html all;
  ((all += content), ...);
  return Element(tag, attributes, all);
}

/// Text that may be broken after "_" and "/", as names of ops and paths want to be.
Html Breakable(std::string_view text);

/// The page's style sheet.
Html Style(Literal css);
/// `<!doctype html>` and what belongs around a head and a body.
Html Document(const Html& head, const Html& body);

/// What a whole page may still hold: long lists and sources ask first, and say so where they had to stay out.
class Ration {
 public:
  explicit Ration(std::size_t bytes) : left_(bytes) {}
  /// `piece`, or where it does not fit a line that says that `what` was left out.
  Html Take(Html piece, std::string_view what);

 private:
  std::size_t left_;
};

}  // namespace assay::report
