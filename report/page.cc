#include "report/page.h"

#include "base/text.h"
#include "report/sections.h"
#include "report/style.h"

namespace assay::report {
namespace {

Html Navigation(std::initializer_list<Link> links, const std::string& body) {
  Html items;
  for (const Link& link : links) {
    // A section that has nothing to say is not there.
    if (!body.contains("id=\"" + std::string(link.anchor.text) + "\"")) continue;
    items += E("li", {}, E("a", {{"href", "#" + std::string(link.anchor.text)}}, link.words.text));
  }
  return E("nav", {}, E("ul", {}, items));
}

Html Footer() {
  return E("footer", {},
           "Made by assay report. The page is complete in itself: it holds "
           "no scripts and fetches nothing.");
}

}  // namespace

std::string RunPage(const RunView& run) {
  Ration ration(kRationBytes);
  Html sections = AttemptsSection(run, ration);
  if (run.result) {
    const AttemptView& result = run.attempts[*run.result];
    if (const Html plots = result.verdict ? ErrorPlots(*result.verdict) : Html(); !plots.empty()) {
      sections += E("section", {}, E("h2", {{"id", "errors"}}, "Error against allowance"),
                    E("p", {},
                      "The allowance is what honest arithmetic under the op's contract may be off, "
                      "element by element."),
                    plots);
    }
    sections += LedgerSection(result);
    sections += SourceSection(result, ration);
  }
  sections += CostSection(run);
  sections += RequestSection(run);
  return Whole("Assay: " + Head(run.op, 80) + ", run " + Head(run.name, 60), SummarySection(run),
               {{"attempts", "Attempts"},
                {"errors", "Errors"},
                {"tried", "What was tried"},
                {"source", "Source and coverage"},
                {"cost", "Cost"},
                {"asked", "What was asked"}},
               sections);
}

std::string Whole(std::string_view title, const Html& header, std::initializer_list<Link> links,
                  const Html& sections) {
  Html body = E("header", {}, header);
  body += Navigation(links, sections.markup());
  body += E("main", {}, sections);
  body += Footer();
  return Document(PageHead(title), body).markup();
}

}  // namespace assay::report
