// What servers answer, and what models write.
#include <algorithm>

#include "agent/models/http_answer.h"
#include "agent/models/protocol.h"
#include "agent/models/sse.h"
#include "base/text.h"
#include "fuzz/target.h"
#include "runs/extract.h"
#include "validator/policy/policy.h"
#include "validator/policy/source_scan.h"
#include "workers/source_check.h"

namespace assay::fuzz {
namespace {

std::vector<models::ServerEvent> EventsOf(std::string_view stream, std::size_t piece) {
  models::SseParser parser(1 << 16);
  std::vector<models::ServerEvent> events;
  for (std::size_t at = 0; at < stream.size(); at += piece) {
    if (!parser.Feed(stream.substr(at, piece))) break;
    while (auto event = parser.Next()) events.push_back(*std::move(event));
  }
  return events;
}

/// Bytes are events however they are cut, and a document as a whole.
void Answer(const models::Protocol& protocol, std::string_view input) {
  const auto events = EventsOf(input, input.size() + 1);
  const auto pieces = EventsOf(input, 1 + input.size() / 7);
  models::PartialReply partial;
  for (const models::ServerEvent& event : events) {
    if (!protocol.on_event(event, partial)) break;
    ASSAY_CHECK(partial.reply.text.size() <= 8 * input.size() + 64);
    if (partial.complete) break;
  }
  if (input.size() < (1 << 16)) {
    ASSAY_CHECK(events.size() == pieces.size());
    for (std::size_t i = 0; i < events.size(); ++i)
      ASSAY_CHECK(events[i].name == pieces[i].name && events[i].data == pieces[i].data);
  }
  if (const auto json = ParseJson(input, "answer")) {
    models::PartialReply whole;
    if (protocol.on_whole(*json, whole))
      ASSAY_CHECK(!whole.usage_known || whole.reply.usage.input_tokens <= 1ull << 41);
  }
}

}  // namespace

void OpenAiReply(std::string_view input) { Answer(models::OpenAiProtocol(), input); }
void AnthropicReply(std::string_view input) { Answer(models::AnthropicProtocol(), input); }

void Refusals(std::string_view input) {
  const models::Refusal refusal = models::ReadRefusal(input);
  (void)models::CureOf(400, refusal.text);
  models::Dialect dialect;
  models::LearnFrom(refusal.text, dialect);
  models::LearnFrom(std::string(input), dialect);
  (void)models::PageTitle(input);
  (void)models::KindOf(input, input);
  models::HttpHead head;
  head.headers = {{"retry-after", std::string(input)}, {"date", std::string(input)}};
  if (const auto wait = models::ParseRetryAfter(head)) ASSAY_CHECK(wait->count() >= 0);
}

void ReplyText(std::string_view input) {
  runs::ModelReply reply;
  reply.text = std::string(input);
  for (const runs::CodeBlock& block : runs::FindCodeBlocks(reply.text))
    ASSAY_CHECK(block.text.size() <= 3 * input.size() && block.line > 0);  // U+FFFD for a byte
  if (const auto candidate = runs::ExtractCandidate(reply)) {
    ASSAY_CHECK(!candidate->kernel.empty());
  } else {
    ASSAY_CHECK(!candidate.error().message.empty());
  }
  (void)OneLine(input, 80);
  (void)Shorten(input, 80);
}

void Source(std::string_view input) {
  const auto lines = static_cast<std::uint32_t>(std::ranges::count(input, '\n') +
                                                std::ranges::count(input, '\r')) +
                     1;
  for (const policy::SourceToken& token : policy::ScanSource(input))
    ASSAY_CHECK(token.line >= 1 && token.line <= lines, std::string(input));
  for (const Finding& finding : policy::CheckSourcePolicy(input))
    ASSAY_CHECK(!finding.message.empty());
  (void)workers::CheckSource(input);
}

}  // namespace assay::fuzz
