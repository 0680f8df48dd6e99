#include "runs/transcript.h"

#include <algorithm>

#include "base/digest.h"
#include "base/text.h"

namespace assay::runs {
namespace {

constexpr std::string_view kSchema = "assay.transcript/1";
constexpr std::string_view kRecorded = "recorded";
constexpr std::string_view kByHand = "by hand";

Result<TranscriptHeader> HeaderFromJson(const Json& json, const std::string& place) {
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(json, place));
  ASSAY_TRY(const std::string schema, reader.Required<std::string>("schema"));
  if (schema != kSchema) {
    return Fail(ErrorKind::kMalformedInput, "the schema is '" + schema + "'",
                reader.PlaceOf("schema"), "this version reads " + std::string(kSchema));
  }
  TranscriptHeader header;
  ASSAY_TRY(const std::string written, reader.Required<std::string>("written"));
  if (written != kRecorded && written != kByHand) {
    return Fail(ErrorKind::kMalformedInput, "must be \"recorded\" or \"by hand\"",
                reader.PlaceOf("written"));
  }
  header.by_hand = written == kByHand;
  ASSAY_TRY(header.note, reader.Optional<std::string>("note", ""));
  if (header.by_hand && Strip(header.note).empty()) {
    return Fail(ErrorKind::kMalformedInput, "a transcript written by hand must say so in its note",
                reader.PlaceOf("note"), "add \"note\": \"written by hand ...\"");
  }
  ASSAY_TRY(header.instance, reader.Optional<std::string>("instance", ""));
  ASSAY_TRY(header.model, reader.Optional<std::string>("model", ""));
  ASSAY_TRY(header.settings, reader.Optional<Json>("settings", Json::object()));
  ASSAY_TRY_VOID(reader.Finish());
  return header;
}

// Texts by digest: what later messages refer to.
using Texts = std::map<std::string, std::string>;

Result<Message> MessageFromJson(const Json& json, const std::string& place, Texts& texts) {
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(json, place));
  Message message;
  ASSAY_TRY(const std::string role, reader.Required<std::string>("role"));
  bool known = false;
  for (const Role candidate : {Role::kSystem, Role::kUser, Role::kAssistant}) {
    if (Name(candidate) != role) continue;
    message.role = candidate;
    known = true;
  }
  if (!known) {
    return Fail(ErrorKind::kMalformedInput, "unknown role '" + role + "'", reader.PlaceOf("role"),
                "one of system, user, assistant");
  }
  ASSAY_TRY(const std::string digest, reader.Required<std::string>("digest"));
  if (reader.Has("text")) {
    ASSAY_TRY(message.text, reader.Required<std::string>("text"));
    texts[digest] = message.text;
  } else if (const auto found = texts.find(digest); found != texts.end()) {
    message.text = found->second;
  } else {
    return Fail(ErrorKind::kMalformedInput, "no earlier message has this digest",
                reader.PlaceOf("digest"), "the transcript has lost lines; record it anew");
  }
  ASSAY_TRY_VOID(reader.Finish());
  return message;
}

Result<Exchange> ExchangeFromJson(ObjectReader& reader, bool by_hand, Texts& texts) {
  Exchange exchange;
  ASSAY_TRY(exchange.name, reader.Optional<std::string>("name", ""));
  ASSAY_TRY(exchange.digest, reader.Optional<std::string>("digest", ""));
  ASSAY_TRY(const Json messages, reader.Optional<Json>("messages", Json::array()));
  if (!by_hand && (exchange.name.empty() || exchange.digest.empty())) {
    return Fail(ErrorKind::kMalformedInput, "a recorded exchange needs a name and a digest",
                reader.PlaceOf("digest"), "a transcript without them is \"written\": \"by hand\"");
  }
  if (!messages.is_array()) {
    return Fail(ErrorKind::kMalformedInput, "must be an array", reader.PlaceOf("messages"));
  }
  for (std::size_t i = 0; i < messages.size(); ++i) {
    ASSAY_TRY(
        Message message,
        MessageFromJson(messages[i], reader.PlaceOf("messages") + "/" + std::to_string(i), texts));
    exchange.conversation.messages.push_back(std::move(message));
  }
  ASSAY_TRY(const Json reply, reader.Required<Json>("reply"));
  ASSAY_TRY(exchange.reply, ReplyFromJson(reply, reader.PlaceOf("reply")));
  texts[Sha256Hex(exchange.reply.text)] = exchange.reply.text;
  return exchange;
}

Status JudgedFromJson(ObjectReader& reader, Transcript& transcript) {
  ASSAY_TRY(const std::int64_t attempt, reader.Required<std::int64_t>("attempt"));
  ASSAY_TRY(const Json seeds, reader.Required<Json>("holdout_seeds"));
  if (!seeds.is_array()) {
    return Fail(ErrorKind::kMalformedInput, "must be an array", reader.PlaceOf("holdout_seeds"));
  }
  std::vector<std::uint64_t> values;
  for (const Json& seed : seeds) {
    ASSAY_TRY(const std::uint64_t value,
              json_detail::Convert<std::uint64_t>(seed, reader.PlaceOf("holdout_seeds")));
    values.push_back(value);
  }
  if (attempt < 1 || attempt > 1'000'000) {
    return Fail(ErrorKind::kMalformedInput, "must be an attempt's number",
                reader.PlaceOf("attempt"));
  }
  transcript.holdout_seeds[static_cast<int>(attempt)] = std::move(values);
  return {};
}

}  // namespace

Result<Transcript> ParseTranscript(std::string_view text, const std::string& file) {
  Transcript transcript;
  Texts texts;
  std::size_t number = 0;
  bool has_header = false;
  for (const std::string_view line : SplitLines(text)) {
    ++number;
    const std::string place = file + ":" + std::to_string(number);
    if (Strip(line).empty()) continue;
    ASSAY_TRY(const Json json, ParseJson(line, place));
    if (!has_header) {
      ASSAY_TRY(transcript.header, HeaderFromJson(json, place));
      has_header = true;
      continue;
    }
    ASSAY_TRY(ObjectReader reader, ObjectReader::Of(json, place));
    ASSAY_TRY(const std::string type, reader.Required<std::string>("type"));
    if (type == "exchange") {
      ASSAY_TRY(Exchange exchange, ExchangeFromJson(reader, transcript.header.by_hand, texts));
      exchange.line = number;
      transcript.exchanges.push_back(std::move(exchange));
    } else if (type == "judged") {
      ASSAY_TRY_VOID(JudgedFromJson(reader, transcript));
    } else {
      return Fail(ErrorKind::kMalformedInput, "unknown type '" + type + "'", reader.PlaceOf("type"),
                  "one of exchange, judged");
    }
    ASSAY_TRY_VOID(reader.Finish());
  }
  if (!has_header) return Fail(ErrorKind::kMalformedInput, "the transcript is empty", file);
  return transcript;
}

Result<Transcript> ReadTranscript(const Path& file) {
  ASSAY_TRY(const std::string text, ReadFile(file));
  return ParseTranscript(text, file.string());
}

std::string TranscriptWriter::Header(const TranscriptHeader& header) {
  return CompactJson({{"schema", kSchema},
                      {"written", header.by_hand ? kByHand : kRecorded},
                      {"note", header.note},
                      {"instance", header.instance},
                      {"model", header.model},
                      {"settings", header.settings}});
}

std::string TranscriptWriter::Line(const Exchange& exchange) {
  Json messages = Json::array();
  for (const Message& message : exchange.conversation.messages) {
    const std::string digest = Sha256Hex(message.text);
    Json entry = {{"role", Name(message.role)}, {"digest", digest}};
    if (written_.insert(digest).second) entry["text"] = message.text;
    messages.push_back(std::move(entry));
  }
  written_.insert(Sha256Hex(exchange.reply.text));
  return CompactJson({{"type", "exchange"},
                      {"name", exchange.name},
                      {"digest", exchange.digest},
                      {"messages", std::move(messages)},
                      {"reply", ToJson(exchange.reply)}});
}

std::string TranscriptWriter::Judged(int attempt, const std::vector<std::uint64_t>& holdout_seeds) {
  return CompactJson({{"type", "judged"}, {"attempt", attempt}, {"holdout_seeds", holdout_seeds}});
}

}  // namespace assay::runs
