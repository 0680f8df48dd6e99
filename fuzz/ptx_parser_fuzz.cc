// Any text at all: Parse gives a module or a located error; what Verify accepts prints to a text that parses to the same module,
// and the emulator decodes it or refuses it with a line.
// Golden files may serve as seeds: the parser takes the text from their input section.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "validator/emu/emulator.h"
#include "validator/ptx/parser.h"
#include "validator/ptx/printer.h"
#include "validator/ptx/verifier.h"

namespace {

constexpr std::string_view kPlace = "fuzz.ptx:";

/// Inputs without a header get one, so that most mutations reach past it.
std::string Prepared(std::string_view text) {
  constexpr std::string_view kInput = ";;; input\n";
  constexpr std::string_view kOutput = ";;; output\n";
  if (const std::size_t start = text.find(kInput); start != std::string_view::npos) {
    text.remove_prefix(start + kInput.size());
    text = text.substr(0, text.find(kOutput));
  }
  if (text.starts_with('.') || text.starts_with('/')) return std::string(text);
  return ".version 9.0\n.target sm_90a\n.address_size 64\n" + std::string(text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace assay;
  const std::string text = Prepared({reinterpret_cast<const char*>(data), size});
  const auto module = ptx::Parse(text, "fuzz.ptx");
  if (!module) {
    ASSAY_CHECK(module.error().place.starts_with(kPlace), module.error().place);
    ASSAY_CHECK(!module.error().message.empty());
    return 0;
  }
  const Status verified = ptx::Verify(*module, "fuzz.ptx");
  if (!verified) {
    ASSAY_CHECK(verified.error().place.starts_with(kPlace), verified.error().place);
    return 0;
  }
  const std::string printed = ptx::Print(*module);
  const auto again = ptx::Parse(printed, "printed.ptx");
  ASSAY_CHECK(again.has_value(), again ? std::string() : ToString(again.error()) + "\n" + printed);
  ASSAY_CHECK(*again == *module, "printed as:\n" + printed);
  ASSAY_CHECK(ptx::Verify(*again).has_value(), printed);
  const auto program = emu::Program::Load(text);
  ASSAY_CHECK(program || program.error().place.find(".ptx:") != std::string::npos,
              program ? std::string() : ToString(program.error()));
  return 0;
}
