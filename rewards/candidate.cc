#include "rewards/candidate.h"

#include "runs/extract.h"

namespace assay::rewards {
namespace {

Result<std::map<std::string, std::string>> BindingFromJson(const Json& json,
                                                           const std::string& place) {
  if (json.is_string()) return ParseBinding(json.get<std::string>(), place);
  std::map<std::string, std::string> binding;
  if (!json.is_object())
    return Fail(ErrorKind::kMalformedInput, "must be an object or \"T=bf16\"", place);
  for (const auto& [variable, dtype] : json.items()) {
    ASSAY_TRY(binding[variable], json_detail::Convert<std::string>(dtype, place + "/" + variable));
  }
  return binding;
}

Status ReadCandidate(ObjectReader& reader, const std::string& place, CandidateLine& line) {
  const bool files = reader.Has("kernel") || reader.Has("launch");
  if (files == reader.Has("reply")) {
    return Fail(ErrorKind::kMalformedInput, "holds neither a candidate nor a reply, or both", place,
                "give \"kernel\" and \"launch\", or \"reply\"");
  }
  if (files) {
    ASSAY_TRY(line.candidate.kernel, reader.Required<std::string>("kernel"));
    ASSAY_TRY(const Json launch, reader.Required<Json>("launch"));
    line.candidate.launch = launch.is_string() ? launch.get<std::string>() : CompactJson(launch);
    return {};
  }
  ASSAY_TRY(line.reply, reader.Required<std::string>("reply"));
  auto candidate = runs::ExtractCandidate({.text = line.reply});
  if (candidate)
    line.candidate = *std::move(candidate);
  else
    line.malformed = candidate.error();
  return {};
}

}  // namespace

Result<std::map<std::string, std::string>> ParseBinding(std::string_view text,
                                                        const std::string& place) {
  std::map<std::string, std::string> binding;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), part.size() + 1));
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos)
      return Fail(ErrorKind::kMalformedInput, "must read \"T=bf16,U=f32\"", place);
    binding[std::string(part.substr(0, equals))] = part.substr(equals + 1);
  }
  return binding;
}

Result<CandidateLine> ParseCandidate(std::string_view text, const std::string& place) {
  ASSAY_TRY(const Json json, ParseJson(text, place));
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(json, place));
  CandidateLine line;
  ASSAY_TRY(line.id, reader.Optional<Json>("id", nullptr));
  if (!line.id.is_null() && !line.id.is_string() && !line.id.is_number_integer()) {
    return Fail(ErrorKind::kMalformedInput, "must be a string, an integer or null",
                reader.PlaceOf("id"));
  }
  ASSAY_TRY(line.op, reader.Required<std::string>("op"));
  if (line.op.find('/') != std::string::npos || line.op.starts_with('.')) {
    return Fail(ErrorKind::kMalformedInput, "must be the name of an op, not a path",
                reader.PlaceOf("op"), "ASSAY_OPS names folders of more ops");
  }
  ASSAY_TRY(line.op_digest, reader.Optional<std::string>("op_digest", ""));
  ASSAY_TRY(const Json binding, reader.Optional<Json>("binding", Json::object()));
  ASSAY_TRY(line.binding, BindingFromJson(binding, reader.PlaceOf("binding")));
  ASSAY_TRY(line.arch, reader.Optional<std::string>("arch", ""));
  ASSAY_TRY_VOID(ReadCandidate(reader, place, line));
  ASSAY_TRY(line.model, reader.Optional<std::string>("model", ""));
  ASSAY_TRY(line.prompt, reader.Optional<Json>("prompt", Json::array()));
  ASSAY_TRY_VOID(reader.Finish());
  return line;
}

}  // namespace assay::rewards
