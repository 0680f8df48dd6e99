// What sections share.
#include "report/sections.h"

namespace assay::report {

Literal ToneOf(std::string_view state) {
  if (state == "accepted" || state == "passed") return "accepted";
  if (state == "refuted" || state == "internal_error" || state == "failed") return "refuted";
  if (state == "inconclusive") return "inconclusive";
  return "pending";
}

Html StateTag(std::string_view state) {
  const std::string_view word = state.substr(0, state.find(':'));
  return E("span", {{"class", "tag " + std::string(ToneOf(word).text)}}, state);
}

Html Figure(std::string_view name, std::string_view value, std::string_view more) {
  Html content = Html::Text(value);
  if (!more.empty()) content += E("small", {}, more);
  return E("div", {}, E("dt", {}, name), E("dd", {}, content));
}

Html Folded(const Html& summary, const Html& content, bool open) {
  Attributes attributes;
  if (open) attributes.push_back({"open", ""});
  return E("details", attributes, E("summary", {}, summary), content);
}

// A name that begins with '#' is that of a number's column.
Html HeadRow(std::initializer_list<std::string_view> names) {
  Html row;
  for (const std::string_view name : names) {
    const bool number = name.starts_with('#');
    row += E("th", {{"scope", "col"}, {"class", number ? "n" : ""}}, name.substr(number ? 1 : 0));
  }
  return E("thead", {}, E("tr", {}, row));
}

}  // namespace assay::report
