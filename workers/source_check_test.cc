#include "workers/source_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay::workers {
namespace {

std::uint32_t ProblemLine(std::string_view source) {
  const auto problem = CheckSource(source);
  return problem ? problem->line : 0;
}

TEST(CheckSource, FindsIncludesOfFilesOfTheHost) {
  EXPECT_EQ(ProblemLine("#include <cuda_bf16.h>\n  #  include\t\"/etc/shadow\"\n"), 2u);
  EXPECT_EQ(ProblemLine("%:include </etc/shadow>"), 1u);
  EXPECT_EQ(ProblemLine("\n\n#include_next \"../x.h\""), 3u);
  EXPECT_EQ(ProblemLine("#include <cuda/../../x.h>"), 1u);
}

TEST(CheckSource, PassesHonestSources) {
  for (const char* source :
       {"", "#", "#include", "#include \"", "#include <cuda/std/array>\n",
        "// include \"/etc/x\"\n", "#define x \"/a\"\n", "float half = 1 / 2;\n",
        "// \xc3\xa9t\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\n"}) {
    EXPECT_EQ(ProblemLine(source), 0u) << source;
  }
}

TEST(CheckSource, RefusesWhatIsNotUtf8) {
  using namespace std::string_view_literals;
  for (const std::string_view bytes :
       {"\xff\xfe#\0"sv, "a\0b"sv, "\x80"sv, "\xc3"sv, "\xc0\xaf"sv, "\xe0\x80\xaf"sv,
        "\xed\xa0\x80"sv, "\xf4\x90\x80\x80"sv, "\xf8\x88\x80\x80\x80"sv, "\xe2\x82"sv}) {
    EXPECT_EQ(ProblemLine("ok\n" + std::string(bytes)), 2u);
  }
}

}  // namespace
}  // namespace assay::workers
