#include "base/text.h"
#include "report/sections.h"
#include "report/words.h"

namespace assay::report {
namespace {

std::string Plain(const Json& value) {
  return Head(value.is_string() ? value.get<std::string>() : CompactJson(value), 200);
}

// The members of an object of the request, one a line; what leads to servers and keys is nobody's business but the run's.
Html Members(const RunView& run, const char* key, std::string_view prefix = {}) {
  const auto object = run.request.find(key);
  Html rows;
  if (object == run.request.end() || !object->is_object()) return rows;
  for (const auto& [name, value] : object->items()) {
    // Budgets of nothing are no limit, and empty texts were not given.
    const bool given = value.is_boolean() || (value.is_number() && value.get<double>() != 0) ||
                       (value.is_string() && !value.get<std::string>().empty());
    if (!given || name == "folder") continue;
    rows += E("dt", {}, prefix, Spaced(Head(name, 80)));
    rows += E("dd", {}, Plain(value));
  }
  return rows;
}

}  // namespace

Html RequestSection(const RunView& run) {
  Html rows = E("dt", {}, "instance");
  rows += E("dd", {}, Head(run.instance, 200));
  rows += E("dt", {}, "model");
  rows += E("dd", {}, Head(run.model, 200));
  rows += Members(run, "settings");
  rows += Members(run, "budget", "at most, ");
  rows += Members(run, "versions");
  rows += E("dt", {}, "prompts");
  rows += E("dd", {{"class", "mono"}}, Head(run.prompts_digest, 80));
  rows += E("dt", {}, "began, and ended");
  rows += E("dd", {}, Moment(run.started), ", ", Moment(run.ended));
  return E("section", {}, E("h2", {{"id", "asked"}}, "What was asked"),
           E("dl", {{"class", "facts-list"}}, rows));
}

}  // namespace assay::report
