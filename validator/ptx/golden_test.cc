// Golden files: testdata/golden/*.txt, each a command, an input and the expected output:
//
//   ;;; command: print | forms
//   ;;; input
//   .version 9.0 ...
//   ;;; output
//   ...
//
// `print` writes the verified module back, `forms` lists each instruction with its row of the ISA
// table. Files named bad-* must be refused; their output is the error. ASSAY_REBASE=1 rewrites
// outputs: read the difference before committing it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "base/file.h"
#include "validator/ptx/isa.h"
#include "validator/ptx/parser.h"
#include "validator/ptx/printer.h"
#include "validator/ptx/verifier.h"

namespace assay::ptx {
namespace {

const Path kFolder = Path(ASSAY_SOURCE_DIR) / "validator/ptx/testdata/golden";

std::vector<std::string> GoldenFiles() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    if (entry.path().extension() == ".txt") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

struct Golden {
  std::string command, input, output;
};

Golden Cut(const std::string& text) {
  const std::string command = ";;; command: ", input = "\n;;; input\n", output = "\n;;; output\n";
  const std::size_t at_input = text.find(input);
  const std::size_t at_output = text.find(output);
  EXPECT_TRUE(text.starts_with(command) && at_input != std::string::npos);
  Golden golden;
  golden.command = text.substr(command.size(), at_input - command.size());
  const std::size_t start = at_input + input.size();
  const std::size_t end = at_output == std::string::npos ? text.size() : at_output + 1;
  golden.input = text.substr(start, end - start);
  if (at_output != std::string::npos) golden.output = text.substr(at_output + output.size());
  return golden;
}

std::string FormsText(const Module& module) {
  std::string text;
  for (const Function& function : module.functions) {
    if (!function.has_body) continue;
    text += function.name + "\n";
    for (const Instruction& in : function.body) {
      const SourceLocation from = UserFrame(module, in.location);
      text += fmt::format("  {}{}\n    {} ({})\n", PrintInstruction(module, function, in),
                          in.location < 0 ? "" : fmt::format("   // {}:{}", from.file, from.line),
                          Text(FormOf(in)), FormOf(in).section);
    }
  }
  return text;
}

class GoldenTest : public testing::TestWithParam<std::string> {};

TEST_P(GoldenTest, Matches) {
  const Path path = kFolder / (GetParam() + ".txt");
  const auto text = ReadFile(path);
  ASSERT_TRUE(text) << ToString(text.error());
  const Golden golden = Cut(*text);
  std::string actual;
  bool good = false;
  if (const auto module = Parse(golden.input, "input.ptx"); !module) {
    actual = ToString(module.error()) + "\n" + std::string(Name(module.error().kind)) + "\n";
  } else if (const Status verified = Verify(*module, "input.ptx"); !verified) {
    actual = ToString(verified.error()) + "\n" + std::string(Name(verified.error().kind)) + "\n";
  } else {
    good = true;
    actual = golden.command == "forms" ? FormsText(*module) : Print(*module);
    const auto again = Parse(Print(*module), "printed.ptx");
    ASSERT_TRUE(again) << ToString(again.error());
    EXPECT_TRUE(*again == *module) << "the printed module is another one";
  }
  EXPECT_EQ(good, !GetParam().starts_with("bad-"));
  if (const char* const rebase = std::getenv("ASSAY_REBASE"); rebase != nullptr && *rebase == '1') {
    const Status written =
        WriteFileAtomically(path, fmt::format(";;; command: {}\n;;; input\n{};;; output\n{}",
                                              golden.command, golden.input, actual));
    ASSERT_TRUE(written) << ToString(written.error());
    return;
  }
  EXPECT_EQ(actual, golden.output);
}

INSTANTIATE_TEST_SUITE_P(Files, GoldenTest, testing::ValuesIn(GoldenFiles()), [](const auto& file) {
  std::string name = file.param;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); },
      '_');
  return name;
});

}  // namespace
}  // namespace assay::ptx
