#include "report/html.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "base/error.h"
#include "base/text.h"

namespace assay::report {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";

// Bytes of what `text` begins with and a page may not hold; 0 where it begins with something else. `text` is valid UTF-8.
std::size_t ForbiddenAt(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<std::uint8_t>(text[i]) : 0u;
  };
  if (byte(0) < 0x20) return byte(0) == '\n' || byte(0) == '\t' ? 0 : 1;
  if (byte(0) == 0x7f) return 1;
  if (byte(0) == 0xc2 && byte(1) < 0xa0) return 2;  // C1
  if (byte(0) != 0xe2 && byte(0) != 0xef) return 0;
  // Overrides of the writing direction show a source in another order than it has.
  if (byte(0) == 0xe2 && byte(1) == 0x80 && byte(2) >= 0xaa && byte(2) <= 0xae) return 3;
  if (byte(0) == 0xe2 && byte(1) == 0x81 && byte(2) >= 0xa6 && byte(2) <= 0xa9) return 3;
  if (byte(0) == 0xef && byte(1) == 0xbf && byte(2) >= 0xbe) return 3;  // no characters
  return 0;
}

std::string Escaped(std::string_view raw) {
  const std::string valid = ValidUtf8(raw);
  std::string_view text = valid;
  std::string escaped;
  escaped.reserve(text.size() + text.size() / 16);
  while (!text.empty()) {
    const std::size_t forbidden = ForbiddenAt(text);
    if (forbidden > 0) {
      escaped += kReplacement;
      text.remove_prefix(forbidden);
      continue;
    }
    switch (text.front()) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += text.front();
    }
    text.remove_prefix(1);
  }
  return escaped;
}

void CheckHarmless(const Attribute& attribute) {
  const std::string_view name = attribute.name.text;
  ASSAY_CHECK(!name.starts_with("on") && name != "src" && name != "srcdoc" && name != "style",
              "an attribute that could run or fetch something");
  ASSAY_CHECK((name != "href" && name != "xlink:href") || attribute.value.starts_with('#'),
              "a link that leads out of the page");
}

}  // namespace

Html Html::Text(std::string_view text) {
  Html html;
  html.markup_ = Escaped(text);
  return html;
}

Html Open(Literal tag, const Attributes& attributes) {
  Html html;
  html.markup_ = "<";
  html.markup_ += tag.text;
  for (const Attribute& attribute : attributes) {
    CheckHarmless(attribute);
    html.markup_ += ' ';
    html.markup_ += attribute.name.text;
    html.markup_ += "=\"" + Escaped(attribute.value) + '"';
  }
  html.markup_ += '>';
  return html;
}

Html Element(Literal tag, const Attributes& attributes, const Html& content) {
  ASSAY_CHECK(tag.text != "script" && tag.text != "style" && tag.text != "iframe",
              "an element whose content is no text");
  Html html = Open(tag, attributes);
  html.markup_ += content.markup_;
  html.markup_ += "</";
  html.markup_ += tag.text;
  html.markup_ += '>';
  return html;
}

Html Breakable(std::string_view text) {
  Html html;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of("_/"), text.size() - 1) + 1;
    html += text.substr(0, end);
    text.remove_prefix(end);
    if (!text.empty()) html += Open("wbr", {});
  }
  return html;
}

Html Style(Literal css) {
  Html html;
  html.markup_ = "<style>\n";
  html.markup_ += css.text;
  html.markup_ += "</style>";
  return html;
}

Html Document(const Html& head, const Html& body) {
  Html html;
  html.markup_ = "<!doctype html>\n<html lang=\"en\">\n<head>\n" + head.markup_ +
                 "\n</head>\n<body>\n" + body.markup_ + "\n</body>\n</html>\n";
  return html;
}

Html Ration::Take(Html piece, std::string_view what) {
  if (piece.bytes() <= left_) {
    left_ -= piece.bytes();
    return piece;
  }
  return E("p", {{"class", "cut"}},
           fmt::format("{} left out here, to keep this page small: it would take {} KB.", what,
                       piece.bytes() / 1024 + 1));
}

}  // namespace assay::report
