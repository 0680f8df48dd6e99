#include "dataset/record.h"

#include <algorithm>

namespace assay::dataset {
namespace {

// Longer than any run of backticks inside.
std::string FenceFor(std::string_view text) {
  std::size_t longest = 2;
  std::size_t run = 0;
  for (const char c : text) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  return std::string(longest + 1, '`');
}

std::string Block(std::string_view info, std::string_view text) {
  const std::string fence = FenceFor(text);
  std::string block = fence + std::string(info) + "\n" + std::string(text);
  if (!block.ends_with('\n')) block += '\n';
  return block + fence + "\n";
}

}  // namespace

std::string Target::Id() const {
  std::string id = op;
  for (const auto& [variable, dtype] : binding) id += "-" + variable + "=" + dtype;
  return id + "-" + arch;
}

Json ToJson(const std::vector<ChatMessage>& messages) {
  Json json = Json::array();
  for (const ChatMessage& message : messages)
    json.push_back({{"role", message.role}, {"content", message.content}});
  return json;
}

Result<std::vector<ChatMessage>> MessagesFromJson(const Json& json, const std::string& place) {
  if (!json.is_array()) return Fail(ErrorKind::kMalformedInput, "must be an array", place);
  std::vector<ChatMessage> messages;
  for (std::size_t i = 0; i < json.size(); ++i) {
    ASSAY_TRY(ObjectReader reader, ObjectReader::Of(json[i], place + "/" + std::to_string(i)));
    ChatMessage message;
    ASSAY_TRY(message.role, reader.Required<std::string>("role"));
    ASSAY_TRY(message.content, reader.Required<std::string>("content"));
    ASSAY_TRY_VOID(reader.Finish());
    messages.push_back(std::move(message));
  }
  return messages;
}

std::string AnswerOf(std::string_view kernel, std::string_view launch, std::string_view language) {
  return Block(std::string(language) + " kernel.cu", kernel) + "\n" +
         Block("json launch.json", launch);
}

}  // namespace assay::dataset
