#include "runs/extract.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/rng.h"

namespace assay::runs {
namespace {

using ::testing::HasSubstr;

constexpr const char* kKernel = "__global__ void k() {}\n";
constexpr const char* kPlan = "{\"schema\": \"assay.launch/1\"}\n";

std::string Block(const std::string& info, const std::string& text,
                  const std::string& fence = "```") {
  return fence + info + "\n" + text + fence + "\n";
}

ModelReply Reply(std::string text, StopReason stop = StopReason::kEnd) {
  ModelReply reply;
  reply.text = std::move(text);
  reply.stop = stop;
  return reply;
}

std::string Wrong(const std::string& text, StopReason stop = StopReason::kEnd) {
  const auto candidate = ExtractCandidate(Reply(text, stop));
  if (candidate) return "(accepted: " + candidate->kernel + ")";
  EXPECT_EQ(candidate.error().kind, FindingKind::kMalformedReply);
  return candidate.error().message + " | " + candidate.error().missing;
}

// Replies that hold exactly one kernel and one plan, in every form that models write.
TEST(ExtractTest, Finds) {
  const std::string replies[] = {
      Block("cuda", kKernel) + Block("json", kPlan),
      Block("json", kPlan) + "then\n" + Block("cpp", kKernel),
      "prose\n" + Block("CUDA", kKernel) + "more\n" + Block("JSON", kPlan) + "end",
      Block("c++", kKernel) + Block("jsonc", kPlan),
      Block("", kKernel) + Block("", kPlan),
      Block("cuda title=kernel.cu", kKernel) + Block("json launch.json", kPlan),
      Block("cuda", kKernel, "~~~~") + Block("json", kPlan, "````"),
      "**kernel.cu**\n\n" + Block("text", kKernel) + "### `launch.json`\n" + Block("text", kPlan),
      // Other blocks that cannot be meant.
      Block("bash", "nvcc kernel.cu\n") + Block("cuda", kKernel) + Block("json", kPlan) +
          Block("text", "output\n"),
      // A snippet without a kernel beside the kernel.
      Block("cpp", "x = y;\n") + Block("cuda", kKernel) + Block("json", kPlan),
      Block("json", "{\"note\": 1}\n") + Block("cuda", kKernel) + Block("json", kPlan),
      // The named one wins.
      Block("cuda", "__global__ void old() {}\n") + "Now kernel.cu:\n" + Block("cuda", kKernel) +
          Block("json", kPlan),
      // A list item's indentation.
      "1. the kernel\n   ```cuda\n   __global__ void k() {}\n   ```\n2. the plan\n   ```json\n   " +
          std::string(kPlan) + "   ```\n",
      Block("cuda-c++", kKernel) + Block("json5", kPlan),
      // Byte order marks, as editors leave them.
      "\xef\xbb\xbf" + Block("cuda", "\xef\xbb\xbf" + std::string(kKernel)) +
          Block("json", "\xef\xbb\xbf" + std::string(kPlan)),
      // The whole reply in a block of its own.
      Block("markdown", "Here:\n" + Block("cuda", kKernel) + Block("json", kPlan), "````"),
      // A stray fence at the end.
      Block("cuda", kKernel) + Block("json", kPlan) + "```\n",
  };
  for (const std::string& reply : replies) {
    const auto candidate = ExtractCandidate(Reply(reply));
    ASSERT_TRUE(candidate) << reply << "\n" << candidate.error().message;
    EXPECT_EQ(candidate->kernel, kKernel) << reply;
    EXPECT_EQ(candidate->launch, kPlan) << reply;
  }
}

TEST(ExtractTest, SaysWhatIsWrong) {
  EXPECT_THAT(Wrong(""), HasSubstr("the reply is empty"));
  EXPECT_THAT(Wrong(" \n\t\n"), HasSubstr("the reply is empty"));
  EXPECT_THAT(Wrong("no code"), HasSubstr("no code block"));
  EXPECT_THAT(Wrong(Block("cuda", kKernel)), HasSubstr("no launch plan"));
  EXPECT_THAT(Wrong(Block("json", kPlan)), HasSubstr("none of them CUDA"));
  EXPECT_THAT(Wrong(Block("cuda", kKernel) + Block("cuda", kKernel) + Block("json", kPlan)),
              HasSubstr("2 CUDA blocks could be the kernel (lines 1, 4)"));
  EXPECT_THAT(Wrong(Block("cuda", kKernel) + Block("json", kPlan) + Block("json", kPlan)),
              HasSubstr("2 JSON blocks"));
  EXPECT_THAT(Wrong("```cuda\n" + std::string(kKernel)),
              HasSubstr("begins in line 1 of the reply never ends"));
  EXPECT_THAT(Wrong("```cuda\n" + std::string(kKernel), StopReason::kLength),
              HasSubstr("token limit"));
  EXPECT_THAT(Wrong("", StopReason::kLength), HasSubstr("empty: it was cut at the token limit"));
  EXPECT_THAT(Wrong("Let me think", StopReason::kLength), HasSubstr("token limit"));
  EXPECT_THAT(Wrong(Block("diff", "+x\n")), HasSubstr("1 code block (diff), none of them CUDA"));
  EXPECT_THAT(Wrong(Block("cuda", kPlan) + Block("json", kKernel)), HasSubstr("swapped"));
  EXPECT_THAT(Wrong(Block("cuda", " \n") + Block("json", kPlan)), HasSubstr("is empty"));
  EXPECT_THAT(Wrong(Block("cuda", std::string("a\0b\n", 4)) + Block("json", kPlan)),
              HasSubstr("NUL"));
  EXPECT_THAT(Wrong("Sorry, I can't.", StopReason::kRefusal), HasSubstr("declined"));
}

TEST(ExtractTest, WindowsNewlinesAndInvalidBytes) {
  const auto candidate = ExtractCandidate(
      Reply("```cuda\r\n__global__ void k() {} // \xff\r\n```\r\n```json\r\n{}\r\n```\r\n"));
  ASSERT_TRUE(candidate);
  EXPECT_EQ(candidate->kernel, "__global__ void k() {} // \xef\xbf\xbd\n");
  EXPECT_EQ(candidate->launch, "{}\n");
}

TEST(ExtractTest, FencesInsideLongerFencesAreText) {
  const std::string inner = "// ```json\n// {}\n// ```\n```cuda\n```\n";
  const auto candidate =
      ExtractCandidate(Reply("````cuda\n" + inner + kKernel + "````\n" + Block("json", kPlan)));
  ASSERT_TRUE(candidate);
  EXPECT_EQ(candidate->kernel, inner + kKernel);
}

TEST(ExtractTest, TenMegabytesAreReadInOneGo) {
  EXPECT_THAT(Wrong(Block("cuda", std::string(10 << 20, 'x') + "\n") + Block("json", kPlan)),
              HasSubstr("longer than 1 MiB"));
  std::string fences;
  while (fences.size() < (10u << 20)) fences += "```\n";
  Wrong(fences);
  Wrong(std::string(10 << 20, '`'));
  Wrong(std::string(10 << 20, '\n'));
}

TEST(ExtractTest, AnyMixOfPiecesIsSurvived) {
  const std::string pieces[] = {"```",
                                "````",
                                "~~~",
                                "cuda",
                                "json",
                                "\n",
                                "\r\n",
                                "__global__ void k() {}",
                                "{",
                                "}",
                                "kernel.cu",
                                "launch.json",
                                std::string(1, '\0'),
                                "\xff\xfe",
                                " ",
                                "    ",
                                "`"};
  Rng rng(11);
  for (int i = 0; i < 20000; ++i) {
    std::string text;
    for (std::uint64_t n = rng.Below(40); n > 0; --n) text += pieces[rng.Below(std::size(pieces))];
    const auto candidate = ExtractCandidate(Reply(text));
    if (!candidate) continue;
    EXPECT_FALSE(candidate->kernel.empty());
    EXPECT_EQ(candidate->kernel.find('\0'), std::string::npos);
  }
}

}  // namespace
}  // namespace assay::runs
