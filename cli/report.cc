// assay report: a page about a run or a batch.
#include <fmt/format.h>

#include "agent/loop/budget.h"
#include "base/command.h"
#include "cli/command.h"
#include "report/page.h"
#include "report/words.h"
#include "runs/folder.h"

namespace assay::cli {
namespace {

struct Request {
  std::string source;
  std::string out;
  std::string prices;
  bool open = false;
};

Result<report::Price> Prices(const std::string& file) {
  ASSAY_TRY(loop::PriceTable table, loop::LoadPrices(file));
  return [table = std::move(table)](const std::string& model,
                                    const runs::Usage& usage) -> std::optional<double> {
    const auto price = loop::PriceOf(table, model);
    if (!price) return std::nullopt;
    return loop::CostOf(usage, *price);
  };
}

// The desktop's own opener, told the page's path and nothing else. What it starts is not waited for.
void OpenPage(const Path& page) {
  const auto ran =
      RunCommand({"xdg-open", std::filesystem::absolute(page).string()}, {.attached = true});
  if (!ran || !ran->Succeeded())
    Say("note: no program to open pages was found (xdg-open); open " + page.string() + " yourself");
}

struct Page {
  std::string html;
  Json facts;  ///< Of the JSON document.
};

Result<Page> PageOf(const Request& request) {
  if (report::HoldsBatch(request.source)) {
    ASSAY_TRY(const report::BatchView batch, report::ReadBatchView(request.source));
    return Page{report::BatchPage(batch), {{"instances", batch.rows.size()}}};
  }
  ASSAY_TRY(const report::Price prices, Prices(request.prices));
  ASSAY_TRY(const report::RunView run, report::ReadRunView(request.source, prices));
  return Page{report::RunPage(run), {{"attempts", run.attempts.size()}}};
}

Result<int> Report(const Request& request, bool json) {
  ASSAY_TRY(Page page, PageOf(request));
  const Path out = request.out.empty() ? Path(request.source) / "report.html" : Path(request.out);
  // A folder may come from anybody: no link in it is written through.
  ASSAY_TRY_VOID(runs::WriteDerived(out, page.html));
  if (json) {
    Json document = {
        {"schema", "assay.report/1"}, {"page", out.string()}, {"bytes", page.html.size()}};
    document.update(page.facts);
    ASSAY_TRY_VOID(PrintJson(document));
  }
  Say(fmt::format("{} ({})", out.string(), report::Bytes(page.html.size())));
  if (request.open) OpenPage(out);
  return kExitDone;
}

}  // namespace

void AddReport(CLI::App& app, Session& session) {
  CLI::App* command = app.add_subcommand(
      "report", "Write a page about a run or a batch: verdicts, attempts, findings, errors, cost.");
  auto request = std::make_shared<Request>();
  command->add_option("source", request->source, "Folder of a run, or of a batch.")->required();
  command->add_option("--out", request->out, "The page. Default: report.html in the folder.");
  command->add_option("--prices", request->prices,
                      "Price table (assay.prices/1) instead of the built-in one.");
  command->add_flag("--open", request->open, "Show it with the desktop's browser.");
  command->add_flag("--json", session.json,
                    "Print where the page is, as one JSON document on stdout.");
  command->footer(
      "Examples:\n"
      "  assay report runs/ID                    writes runs/ID/report.html\n"
      "  assay report runs/ID --out page.html --open\n"
      "  assay report batches/ID\n"
      "The page is one file without scripts, fetches nothing, and can be sent as it is.");
  command->callback([&session, request] {
    session.run = [&session, request] { return Report(*request, session.json); };
  });
}

}  // namespace assay::cli
