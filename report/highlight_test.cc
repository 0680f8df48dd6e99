#include "report/highlight.h"

#include <gtest/gtest.h>

#include <string>

#include "base/rng.h"
#include "base/text.h"

namespace assay::report {
namespace {

TokenKind KindOf(std::string_view source, std::string_view text) {
  for (const TokenLine& line : Highlight(source)) {
    for (const Token& token : line) {
      if (token.text == text) return token.kind;
    }
  }
  ADD_FAILURE() << "no token '" << text << "' in " << source;
  return TokenKind::kPlain;
}

TEST(Highlight, TellsApartWhatAReaderDoes) {
  const std::string_view source = R"(#include <cuda_bf16.h>
__global__ void f(const float* x) {  // note
  __shared__ float s[0x1F];
  s[threadIdx.x] = 1.5e-3f * x[blockIdx.x];
  __syncthreads();
  atomicAdd(out, sum); const char* t = "a \" b";
}
)";
  EXPECT_EQ(KindOf(source, "__global__"), TokenKind::kKeyword);
  EXPECT_EQ(KindOf(source, "float"), TokenKind::kType);
  EXPECT_EQ(KindOf(source, "threadIdx"), TokenKind::kDevice);
  EXPECT_EQ(KindOf(source, "__syncthreads"), TokenKind::kDevice);
  EXPECT_EQ(KindOf(source, "atomicAdd"), TokenKind::kDevice);
  EXPECT_EQ(KindOf(source, "sum"), TokenKind::kName);
  EXPECT_EQ(KindOf(source, "1.5e-3f"), TokenKind::kNumber);
  EXPECT_EQ(KindOf(source, "0x1F"), TokenKind::kNumber);
  EXPECT_EQ(KindOf(source, "// note"), TokenKind::kComment);
  EXPECT_EQ(KindOf(source, "\"a \\\" b\""), TokenKind::kString);
  EXPECT_EQ(KindOf(source, "#include"), TokenKind::kDirective);
}

TEST(Highlight, CommentsAndStringsGoOverLines) {
  const auto lines = Highlight("a /* one\ntwo */ b\nR\"x(\n)\" )x\" c // d\\\ne\nf");
  EXPECT_EQ(lines[0].back().kind, TokenKind::kComment);
  EXPECT_EQ(lines[1].front(), (Token{TokenKind::kComment, "two */"}));
  EXPECT_EQ(lines[1].back(), (Token{TokenKind::kName, "b"}));
  EXPECT_EQ(lines[3].front(), (Token{TokenKind::kString, ")\" )x\""}));
  EXPECT_EQ(lines[4].front().kind, TokenKind::kComment);
  EXPECT_EQ(lines[5].front(), (Token{TokenKind::kName, "f"}));
}

TEST(Highlight, EveryByteStandsInOneToken) {
  Rng rng(3);
  constexpr std::string_view kBits[] = {"/*", "*/", "//",   "\"",  "'", "R\"(", ")\"", "\\",
                                        "\n", "#",  "0x1p", "a_1", " ", "\xff", ".5e+"};
  for (int round = 0; round < 400; ++round) {
    std::string source;
    for (int i = 0; i < 30; ++i) source += kBits[rng.Below(std::size(kBits))];
    const auto lines = Highlight(source);
    const auto raw = SplitLines(source);
    ASSERT_EQ(lines.size(), raw.size());
    for (std::size_t i = 0; i < lines.size(); ++i) {
      std::string joined;
      for (const Token& token : lines[i]) {
        EXPECT_FALSE(token.text.empty());
        joined += token.text;
      }
      EXPECT_EQ(joined, raw[i]) << source;
    }
  }
}

TEST(Highlight, FindsBarriersButNotTheirNamesInComments) {
  const auto on = [](std::string_view line) {
    return std::string(BarrierOn(Highlight(line).at(0)));
  };
  EXPECT_EQ(on("  __syncthreads();"), "__syncthreads");
  EXPECT_EQ(on("if (__syncthreads_or(p)) x = 1;"), "__syncthreads_or");
  EXPECT_EQ(on("block.sync();"), "sync");
  EXPECT_EQ(on("// __syncthreads() is missing here"), "");
  EXPECT_EQ(on("sync = 1;"), "");
}

}  // namespace
}  // namespace assay::report
