#include "agent/prompts/prompt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/prompts/task_prompt.h"
#include "agent/testing/fakes.h"
#include "ops/properties.h"
#include "validator/findings/finding.h"

namespace assay::prompts {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string Rendered(std::string_view text, const Variables& variables) {
  const auto rendered = RenderTemplate(text, "t.md", variables);
  return rendered ? *rendered : ToString(rendered.error());
}

TEST(RenderTemplateTest, FillsVariables) {
  EXPECT_EQ(Rendered("a {{x}} {{ y }} {{x}}{", {{"x", "1"}, {"y", "2"}}), "a 1 2 1{");
  // What is filled in is text, whatever it looks like.
  EXPECT_EQ(Rendered("{{x}}", {{"x", "{{y}} }} {{"}}), "{{y}} }} {{");
}

TEST(RenderTemplateTest, IsStrictBothWays) {
  EXPECT_THAT(Rendered("a\nb {{colour}}\n", {{"color", ""}}),
              HasSubstr("t.md:2: unknown variable 'colour'"));
  EXPECT_THAT(Rendered("a\nb {{colour}}\n", {{"color", ""}}), HasSubstr("did you mean 'color'?"));
  EXPECT_THAT(Rendered("a", {{"x", ""}}), HasSubstr("does not use the variable 'x'"));
  EXPECT_THAT(Rendered("\n\n{{x", {}), HasSubstr("t.md:3: '{{' does not begin a variable"));
  EXPECT_THAT(Rendered("{{ }}", {}), HasSubstr("does not begin a variable"));
  EXPECT_THAT(Rendered("{{../etc/passwd}}", {}), HasSubstr("does not begin a variable"));
}

TEST(PromptLibraryTest, DigestFollowsEveryByteAndName) {
  testing::TemporaryFolder folder;
  ASSERT_TRUE(WriteFileAtomically(folder.path() / "a.md", "one"));
  const std::string first = PromptLibrary::Load(folder.path())->digest();
  EXPECT_EQ(PromptLibrary::Load(folder.path())->digest(), first);
  ASSERT_TRUE(WriteFileAtomically(folder.path() / "a.md", "two"));
  const std::string second = PromptLibrary::Load(folder.path())->digest();
  EXPECT_NE(second, first);
  std::filesystem::rename(folder.path() / "a.md", folder.path() / "b.md");
  EXPECT_NE(PromptLibrary::Load(folder.path())->digest(), second);
}

TEST(PromptLibraryTest, AMissingFolderOrTemplateSaysWhatToDo) {
  EXPECT_THAT(PromptLibrary::Load("/nonexistent").error().cure, HasSubstr("ASSAY_PROMPTS"));
  const auto prompts = PromptLibrary::Load(testing::PromptsFolder());
  ASSERT_TRUE(prompts);
  EXPECT_FALSE(prompts->Render("nothing.md", {}));
}

TEST(PromptsTest, EveryFamilyOfFindingsHasItsRepairTemplate) {
  const auto prompts = PromptLibrary::Load(testing::PromptsFolder());
  ASSERT_TRUE(prompts);
#define X(name, json, family, meaning) EXPECT_TRUE(prompts->Has("repair/" family ".md")) << family;
  ASSAY_FINDING_KINDS(X)
#undef X
  EXPECT_TRUE(prompts->Has("repair/holdout.md"));
  // Advice is the same whatever was found: it takes no variables.
  for (const std::string& name : prompts->Names()) {
    if (!name.starts_with("repair/") || name == "repair/finding.md") continue;
    EXPECT_TRUE(prompts->Render(name, {})) << name;
  }
}

TEST(TaskPromptTest, ASistersKernelIsShownWithTheTask) {
  const auto prompts = PromptLibrary::Load(testing::PromptsFolder());
  ASSERT_TRUE(prompts);
  const ops::Instance instance = testing::RmsNorm();
  const auto alone = TaskMessages(instance, *prompts);
  const auto with = TaskMessages(
      instance, *prompts, Sister{"rms_norm-T=f32-sm_90", {"__global__ void sister();\n", "{}"}});
  ASSERT_TRUE(with) << ToString(with.error());
  ASSERT_EQ(with->size(), 2u);
  // The task itself comes first and is the same, so that what providers cache stays.
  EXPECT_TRUE((*with)[1].text.starts_with((*alone)[1].text));
  EXPECT_THAT((*with)[1].text, HasSubstr("rms_norm-T=f32-sm_90"));
  EXPECT_THAT((*with)[1].text, HasSubstr("```cuda\n__global__ void sister();\n```"));
  EXPECT_THAT((*alone)[1].text, Not(HasSubstr("sister")));
}

TEST(TaskPromptTest, SaysWhatTheOpIs) {
  const auto prompts = PromptLibrary::Load(testing::PromptsFolder());
  ASSERT_TRUE(prompts);
  const auto messages = TaskMessages(testing::RmsNorm(), *prompts);
  ASSERT_TRUE(messages) << ToString(messages.error());
  ASSERT_EQ(messages->size(), 2u);
  EXPECT_EQ((*messages)[0].role, runs::Role::kSystem);
  EXPECT_TRUE((*messages)[1].cache_here);
  const std::string& task = (*messages)[1].text;
  EXPECT_THAT(task, HasSubstr("`rms_norm`"));
  EXPECT_THAT(task, HasSubstr("T = bf16"));
  EXPECT_THAT(task, HasSubstr("227 KiB"));
  EXPECT_THAT(task,
              HasSubstr(testing::Slurp(testing::RmsNorm().op.reference.source).substr(0, 200)));
  // The worked example is about another op.
  EXPECT_THAT(task, HasSubstr("`row_sum`"));
  EXPECT_THAT(task, Not(HasSubstr("{{")));
}

TEST(TaskPromptTest, SaysWhatAPropertyAsksAndWhereBitsMustMatch) {
  const auto prompts = PromptLibrary::Load(testing::PromptsFolder());
  ops::Instance instance = testing::RmsNorm();
  instance.op.properties = {{"independent_rows", {"x", "tokens"}},
                            {"permutation_equivariant", {"tokens"}}};
  std::string said = TaskVariables(instance, *prompts)->at("properties");
  EXPECT_THAT(said,
              HasSubstr("independent_rows x tokens: a row of an output along `tokens` depends "
                        "on no other row of `x`"));
  EXPECT_THAT(said, Not(HasSubstr("Bits must agree")));
  instance.op.properties.push_back({"deterministic", {}});
  said = TaskVariables(instance, *prompts)->at("properties");
  EXPECT_THAT(said, HasSubstr("no other row of `x`. Bits must agree."));
  EXPECT_THAT(said, HasSubstr("permuted alike. To within the allowed error."));
  EXPECT_THAT(said, HasSubstr("equal inputs give equal bits"));
}

TEST(TaskPromptTest, EveryPropertyHasItsWords) {
  const auto prompts = PromptLibrary::Load(testing::PromptsFolder());
  for (const ops::PropertyRow& row : ops::PropertyRows()) {
    ops::Instance instance = testing::RmsNorm();
    instance.op.properties = {{std::string(row.name), {"x", "y"}}};
    EXPECT_THAT(TaskVariables(instance, *prompts)->at("properties"),
                HasSubstr(std::string(row.name)));
    EXPECT_THAT(TaskVariables(instance, *prompts)->at("properties"), HasSubstr(": ")) << row.name;
  }
}

TEST(TaskPromptTest, SaysWhetherTensorCoresAndTf32AreAllowed) {
  const auto prompts = PromptLibrary::Load(testing::PromptsFolder());
  ops::Instance instance = testing::RmsNorm();
  const auto said = [&] { return TaskVariables(instance, *prompts)->at("precision"); };
  instance.op.contract.tensor_cores = true;
  EXPECT_THAT(said(), HasSubstr("may multiply the 16-bit inputs"));
  instance.binding["T"] = DType::kF32;
  EXPECT_THAT(said(), HasSubstr("not allowed for these dtypes: TF32"));
  EXPECT_THAT(said(), Not(HasSubstr("may multiply")));
  instance.op.contract.tensor_cores = false;
  EXPECT_THAT(said(), HasSubstr("no room for TF32"));
}

TEST(SystemPromptTest, SaysWhatAPlanCanDoAndWhatBuffersPromise) {
  const auto prompts = PromptLibrary::Load(testing::PromptsFolder());
  const auto text = prompts->Render("system.md", {});
  ASSERT_TRUE(text);
  for (const char* const said : {"256 bytes", "tensor_maps", "grids but one come out as 0"})
    EXPECT_THAT(*text, HasSubstr(said));
}

TEST(TaskPromptTest, TheExampleIsNeverTheOpItself) {
  const auto prompts = PromptLibrary::Load(testing::PromptsFolder());
  ops::Instance instance = testing::RmsNorm();
  instance.op.name = "row_sum";
  const auto variables = TaskVariables(instance, *prompts);
  ASSERT_TRUE(variables);
  EXPECT_THAT(variables->at("example"), HasSubstr("`scaled_add`"));
}

TEST(TaskPromptTest, AHugeReferenceIsShortenedInTheMiddle) {
  const auto prompts = PromptLibrary::Load(testing::PromptsFolder());
  testing::TemporaryFolder folder;
  ops::Instance instance = testing::RmsNorm();
  instance.op.reference.source = folder.path() / "reference.cu";
  std::string text = "// the beginning\n";
  for (int i = 0; i < 100'000; ++i) text += "int x" + std::to_string(i) + ";\n";
  ASSERT_TRUE(WriteFileAtomically(instance.op.reference.source, text + "// the end\n"));
  const auto messages = TaskMessages(instance, *prompts);
  ASSERT_TRUE(messages);
  EXPECT_LT(messages->back().text.size(), 64u * 1024);
  EXPECT_THAT(messages->back().text, HasSubstr("// the beginning"));
  EXPECT_THAT(messages->back().text, HasSubstr("// the end"));
}

TEST(DescribeTargetTest, KnowsTargetsAndTheirVariants) {
  EXPECT_THAT(DescribeTarget("sm_90a"), HasSubstr("227 KiB"));
  EXPECT_THAT(DescribeTarget("sm_89"), HasSubstr("99 KiB"));
  EXPECT_THAT(DescribeTarget("sm_999"), HasSubstr("1024 threads"));
}

}  // namespace
}  // namespace assay::prompts
