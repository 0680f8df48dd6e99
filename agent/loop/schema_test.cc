// The committed schemas (runs/schema) against what a run really writes. A small reader of the few
// JSON Schema words that they use.
#include <gtest/gtest.h>

#include "agent/loop/generate.h"
#include "agent/testing/fakes.h"
#include "base/json.h"
#include "base/text.h"

namespace assay::loop {
namespace {

using testing::ReplyWith;

Json Schema(const std::string& name) {
  auto json = ReadJsonFile((Path(ASSAY_SOURCE_DIR) / "runs" / "schema" / name).string());
  EXPECT_TRUE(json) << (json ? "" : ToString(json.error()));
  return json ? *json : Json();
}

// What is wrong, or nothing.
std::string Violation(const Json& schema, const Json& value, const std::string& place) {
  if (schema.contains("$ref"))
    return Violation(Schema(schema.at("$ref").get<std::string>()), value, place);
  if (schema.contains("const") && schema.at("const") != value)
    return place + ": not the constant\n";
  if (schema.contains("enum")) {
    for (const Json& allowed : schema.at("enum")) {
      if (allowed == value) return {};
    }
    return place + ": not in the enumeration\n";
  }
  if (schema.contains("oneOf")) {
    std::string all;
    for (const Json& choice : schema.at("oneOf")) {
      const std::string violation = Violation(choice, value, place);
      if (violation.empty()) return {};
      all += violation;
    }
    return all;
  }
  if (!schema.contains("type")) return {};
  const std::string type = schema.at("type").get<std::string>();
  const bool fits = type == "object"    ? value.is_object()
                    : type == "array"   ? value.is_array()
                    : type == "string"  ? value.is_string()
                    : type == "integer" ? value.is_number_integer()
                    : type == "number"  ? value.is_number()
                                        : value.is_boolean();
  if (!fits) return place + ": not of type " + type + "\n";
  std::string wrong;
  if (type == "array" && schema.contains("items")) {
    for (std::size_t i = 0; i < value.size(); ++i)
      wrong += Violation(schema.at("items"), value[i], place + "/" + std::to_string(i));
  }
  if (type != "object") return wrong;
  const Json properties = schema.value("properties", Json::object());
  for (const Json& key : schema.value("required", Json::array())) {
    if (!value.contains(key.get<std::string>()))
      wrong += place + ": lacks " + key.get<std::string>() + "\n";
  }
  const Json others = schema.value("additionalProperties", Json(true));
  for (const auto& [key, item] : value.items()) {
    if (properties.contains(key)) {
      wrong += Violation(properties.at(key), item, place + "/" + key);
    } else if (others.is_object()) {
      wrong += Violation(others, item, place + "/" + key);
    } else if (others == false) {
      wrong += place + ": does not know " + key + "\n";
    }
  }
  return wrong;
}

TEST(SchemaTest, ARunIsWhatTheSchemasSay) {
  testing::TemporaryFolder folder;
  FakeClock clock;
  GenerateRequest request{.instance = testing::RmsNorm(), .model = {.spec = "exec/scripted"}};
  request.out = folder.path() / "run";
  request.model.temperature = 0.5;
  testing::ScriptedModel broken({ReplyWith("refute race data_race"), "no code"});
  Environment environment{.clock = clock,
                          .make_judges = testing::ScriptedJudges(),
                          .prompts = testing::PromptsFolder(),
                          .versions = {{"assay", "0.1.0"}},
                          .model = &broken};
  ASSERT_FALSE(Generate(request, environment));
  testing::ScriptedModel well({ReplyWith("accept")});
  environment.model = &well;
  request.resume = true;
  ASSERT_TRUE(Generate(request, environment));

  EXPECT_EQ(Violation(Schema("run.schema.json"), *ReadJsonFile((request.out / "run.json").string()),
                      "run.json"),
            "");
  for (const std::string name : {"event", "transcript"}) {
    const Json schema = Schema(name + ".schema.json");
    const std::string text =
        testing::Slurp(request.out / (name == "event" ? "events.jsonl" : "transcript.jsonl"));
    std::size_t number = 0;
    for (const std::string_view line : SplitLines(text)) {
      EXPECT_EQ(Violation(schema, *ParseJson(line, name), name + ":" + std::to_string(++number)),
                "");
    }
    EXPECT_GT(number, 5u);
  }
}

TEST(SchemaTest, TheReaderSeesWhatIsWrong) {
  Json run = {{"type", "run_stopped"}, {"n", 0},       {"time", ""},       {"ms", 0},
              {"outcome", "accepted"}, {"reason", ""}, {"resumable", true}};
  const Json schema = Schema("event.schema.json");
  EXPECT_EQ(Violation(schema, run, "e"), "");
  run["surprise"] = 1;
  EXPECT_NE(Violation(schema, run, "e"), "");
  run.erase("surprise");
  run["outcome"] = "fine";
  EXPECT_NE(Violation(schema, run, "e"), "");
}

}  // namespace
}  // namespace assay::loop
