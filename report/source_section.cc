#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/text.h"
#include "report/sections.h"
#include "report/source.h"
#include "report/words.h"

namespace assay::report {
namespace {

constexpr std::size_t kMostUnreached = 60;

// "kernel.cu:14: the branch, taken" -> line 14, "the branch, taken"; line 0 where it names none.
Mark MarkOf(const verdict::Unreached& unreached) {
  constexpr std::string_view kFile = "kernel.cu:";
  Mark mark{.line = 0, .kind = MarkKind::kUnreached, .note = unreached.what};
  const std::size_t at = unreached.what.find(kFile);
  if (at != std::string::npos) {
    const char* const first = unreached.what.data() + at + kFile.size();
    const char* const end = unreached.what.data() + unreached.what.size();
    const char* const stop = std::from_chars(first, end, mark.line).ptr;
    mark.note = std::string(Strip(std::string_view(stop, end)).substr(stop < end && *stop == ':'));
  }
  mark.note = "no case reached: " + std::string(Strip(mark.note));
  if (unreached.copies > 1) mark.note += fmt::format(" ({} copies)", unreached.copies);
  return mark;
}

Html BranchWords(const verdict::Verdict& verdict, std::size_t unreached) {
  for (const verdict::GateResult& gate : verdict.gates) {
    for (const Statistic& statistic : gate.statistics) {
      if (statistic.name != "branch_sides") continue;
      const auto count = [](double value) {
        return Count(
            static_cast<std::uint64_t>(std::isfinite(value) ? std::clamp(value, 0.0, 1e15) : 0.0));
      };
      return E("p", {},
               fmt::format("Of the {} sides of branches in the PTX, some case reached {}.",
                           count(statistic.limit), count(statistic.value)));
    }
  }
  return unreached == 0 ? Html()
                        : E("p", {}, Plural(unreached, "side"), " of branches no case reached.");
}

}  // namespace

Html SourceSection(const AttemptView& attempt, Ration& ration) {
  if (!attempt.kernel || !attempt.verdict) return {};
  const std::vector<verdict::Unreached>& unreached = attempt.verdict->ledger.unreached();
  std::vector<Mark> marks;
  for (const verdict::Unreached& each : unreached) {
    if (marks.size() == kMostUnreached) break;
    marks.push_back(MarkOf(each));
  }
  Html html =
      E("h2", {{"id", "source"}},
        fmt::format("{} of attempt {}, and what no case reached",
                    attempt.state == "accepted" ? "The kernel" : "The source", attempt.number));
  html += BranchWords(*attempt.verdict, unreached.size());
  if (!marks.empty()) {
    if (unreached.size() > marks.size())
      html += E("p", {{"class", "cut"}}, Plural(unreached.size() - marks.size(), "more side"),
                " of branches left out here.");
    Html lines;
    for (const Mark& mark : marks) {
      if (mark.line == 0) lines += E("li", {}, Head(mark.note, 240));
    }
    if (!lines.empty()) html += E("ul", {{"class", "small"}}, lines);
    html += ration.Take(Excerpt(*attempt.kernel, marks, 2), "The lines that no case reached are");
  }
  html += Folded(
      Html::Text(fmt::format("kernel.cu, {}", Plural(SplitLines(*attempt.kernel).size(), "line"))),
      ration.Take(Listing(*attempt.kernel, marks), "The source is"), marks.empty());
  if (attempt.launch) {
    html += Folded(Html::Text("launch.json"),
                   ration.Take(Listing(*attempt.launch, {}), "The launch plan is"));
  }
  return E("section", {}, html);
}

}  // namespace assay::report
