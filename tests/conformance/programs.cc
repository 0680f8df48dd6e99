#include "tests/conformance/programs.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <string_view>

#include "base/rng.h"

namespace assay::conformance {
namespace {

constexpr std::size_t kMaxSources = 24;
constexpr std::size_t kMaxDestinations = 24;

/// Kinds that a result of another instruction may stand in for; others mean amounts and places.
constexpr std::array<std::string_view, 15> kPlain = {"pred", "u16", "s16",   "u32",    "s32",
                                                     "u64",  "s64", "f16",   "bf16",   "f32",
                                                     "f64",  "few", "f16x2", "bf16x2", "u16x2"};
bool IsPlain(std::string_view kind) { return std::ranges::find(kPlain, kind) != kPlain.end(); }

bool IsEligible(const Form& form) {
  const auto scalar = [](const FormOperand& operand) { return operand.vector == 0; };
  return !form.bound.approximate() && !form.bound.tensor && !form.layout_probe && !form.wgmma &&
         form.threads == kMaxThreads && std::ranges::all_of(form.destinations, scalar) &&
         std::ranges::all_of(form.sources, scalar);
}

/// A program under way: values by the width of their registers, as placeholders.
class Writer {
 public:
  Writer(std::string name, std::uint64_t seed) : rng_(DeriveSeed(seed, name)) {
    program_.name = std::move(name);
  }

  Form Write(const std::vector<const Form*>& forms) {
    while (program_.destinations.size() < kMaxDestinations && program_.sources.size() < kMaxSources)
      Step(*forms[rng_.Below(forms.size())]);
    return std::move(program_);
  }

 private:
  std::string Source(const std::string& kind) {
    std::vector<std::string>& known = values_[RegisterBits(kind)];
    if (IsPlain(kind) && !known.empty() && rng_.Below(4) != 0) {
      // Young values, so that steps depend on each other.
      const std::size_t young = std::min<std::size_t>(known.size(), 6);
      return known[known.size() - 1 - rng_.Below(young)];
    }
    program_.sources.push_back({.kind = kind});
    std::string name = "$s" + std::to_string(program_.sources.size() - 1);
    if (IsPlain(kind)) known.push_back(name);
    return name;
  }

  void Step(const Form& form) {
    std::vector<std::string> sources;
    for (const FormOperand& operand : form.sources) sources.push_back(Source(operand.kind));
    const std::size_t first = program_.destinations.size();
    std::string guard;
    const int bits = RegisterBits(form.destinations[0].kind);
    const bool one = form.destinations.size() == 1 &&
                     form.instruction.find("sync") == std::string::npos &&
                     std::ranges::count(form.instruction, ';') == 1;
    if (one && bits > 1 && rng_.Below(4) == 0) {
      guard = rng_.Below(2) == 0 ? "@" : "@!";
      guard += Source("pred") + " ";
      const std::string kind = bits == 16 ? "u16" : bits == 32 ? "u32" : "u64";
      program_.instruction += "mov.b" + std::to_string(bits) + " $d" + std::to_string(first) +
                              ", " + Source(kind) + "; ";
    }
    program_.instruction += guard;
    const std::string& text = form.instruction;
    for (std::size_t at = 0; at < text.size();) {
      const bool placeholder = text[at] == '$' && at + 1 < text.size();
      if (!placeholder) {
        program_.instruction += text[at++];
        continue;
      }
      const bool source = text[at + 1] == 's';
      std::size_t end = at + 2;
      std::size_t index = 0;
      for (; end < text.size() && text[end] >= '0' && text[end] <= '9'; ++end)
        index = 10 * index + static_cast<std::size_t>(text[end] - '0');
      program_.instruction += source ? sources[index] : "$d" + std::to_string(first + index);
      at = end;
    }
    program_.instruction += ' ';
    for (const FormOperand& operand : form.destinations) {
      program_.destinations.push_back(operand);
      values_[RegisterBits(operand.kind)].push_back(
          "$d" + std::to_string(program_.destinations.size() - 1));
    }
  }

  Rng rng_;
  Form program_;
  std::map<int, std::vector<std::string>> values_;
};

}  // namespace

std::vector<Form> RandomPrograms(std::span<const Form> forms, int count, std::uint64_t seed) {
  std::vector<const Form*> eligible;
  for (const Form& form : forms) {
    if (IsEligible(form)) eligible.push_back(&form);
  }
  std::vector<Form> programs;
  for (int i = 0; i < count; ++i)
    programs.push_back(Writer("program " + std::to_string(i), seed).Write(eligible));
  return programs;
}

}  // namespace assay::conformance
