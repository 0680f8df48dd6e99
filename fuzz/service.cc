// What clients of the service, agents and folders from elsewhere bring.
#include "base/text.h"
#include "fuzz/target.h"
#include "runs/signature.h"
#include "serve/mcp.h"
#include "serve/requests.h"

namespace assay::fuzz {

/// Certificates and envelopes: what is read again is what was written.
void Envelope(std::string_view input) {
  if (const auto certificate = runs::OpenSealed(input, "c.json"))
    ASSAY_CHECK(runs::SealedText(*certificate) == input);
  const auto opened = runs::OpenEnvelope(input, "e.json");
  if (opened) {
    ASSAY_CHECK(runs::PublicKey::FromId(opened->key.id(), "id").has_value());
  } else {
    ASSAY_CHECK(!opened.error().message.empty());
  }
}

/// A session, line by line; every answer is one line of JSON-RPC.
void Mcp(std::string_view input) {
  serve::McpServer server({{.name = "echo",
                            .description = "",
                            .input = {{"type", "object"}},
                            .run = [](const serve::ToolCall& call) -> Result<serve::ToolAnswer> {
                              call.progress("half");
                              return serve::ToolAnswer{.text = CompactJson(call.arguments),
                                                       .structured = call.arguments};
                            }}},
                          "1", [](const std::string& line) {
                            ASSAY_CHECK(line.find('\n') == std::string::npos);
                            ASSAY_CHECK(Json::accept(line), line);
                          });
  for (const std::string_view line : SplitLines(input)) server.OnLine(line);
  server.Finish();
}

void ServiceCheck(std::string_view input) {
  static const auto op = ops::Library::Default().Find("row_sum");
  ASSAY_CHECK(op.has_value());
  WithJson(input, "body", [](const Json& json) {
    const auto check = serve::ParseCheck(
        json, "body",
        [](const std::string& name) -> Result<ops::OpSpec> {
          ASSAY_CHECK(name.find('/') == std::string::npos && name.find('.') == std::string::npos);
          return *op;
        },
        "sm_90");
    if (!check) ASSAY_CHECK(!check.error().message.empty());
  });
}

}  // namespace assay::fuzz
