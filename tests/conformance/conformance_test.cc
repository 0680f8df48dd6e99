// The emulator's instruction handlers against what an H200 returned.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "tests/conformance/forms.h"
#include "tests/conformance/golden.h"
#include "tests/conformance/harness.h"
#include "tests/conformance/inputs.h"

namespace assay::conformance {
namespace {

using u64 = std::uint64_t;
using Lanes = std::vector<std::vector<u64>>;

struct Recorded {
  Form form;
  Lanes inputs;
  Lanes outputs;
};

/// Kinds of floating-point results, by register kind.
double ToDouble(std::string_view kind, u64 bits) {
  if (kind == "f64" || kind == "m.f64") return __builtin_bit_cast(double, bits);
  if (kind == "f16") {
    const int exponent = static_cast<int>(bits >> 10 & 31);
    const double fraction = static_cast<double>(bits & 1023);
    const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
    if (exponent == 31) return fraction == 0 ? sign * INFINITY : NAN;
    return sign * (exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25));
  }
  if (kind == "bf16") return static_cast<double>(__builtin_bit_cast(float, static_cast<std::uint32_t>(bits << 16)));
  return static_cast<double>(__builtin_bit_cast(float, static_cast<std::uint32_t>(bits)));
}
/// One unit in the last place of `value` in the kind's format.
double Ulp(std::string_view kind, double value) {
  const int fraction = kind == "f64" || kind == "m.f64" ? 52 : kind == "f16" ? 10 : kind == "bf16" ? 7 : 23;
  const int lowest = kind == "f64" || kind == "m.f64" ? -1022 : kind == "f16" ? -14 : -126;
  if (value == 0 || !std::isfinite(value)) return std::ldexp(1.0, lowest - fraction);
  return std::ldexp(1.0, std::max(std::ilogb(value), lowest) - fraction);
}

std::vector<std::pair<std::string, u64>> Elements(const std::string& kind, u64 bits) {
  for (const auto& [packed, element] : {std::pair{"f16x2", "f16"}, {"bf16x2", "bf16"}, {"m.f16x2", "f16"}}) {
    if (kind == packed) return {{element, bits & 0xffff}, {element, bits >> 16}};
  }
  return {{kind == "m.f32" ? "f32" : kind, bits}};
}

bool SameClass(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  if (std::isinf(a) || std::isinf(b)) return a == b;
  return true;
}

/// Is what the hardware returned within the documented bound of the emulator's (correctly rounded) result?
bool Within(const Form& form, const std::string& kind, u64 emulated, u64 hardware, u64 input) {
  const auto left = Elements(kind, emulated);
  const auto right = Elements(kind, hardware);
  for (std::size_t i = 0; i < left.size(); ++i) {
    if (left[i].second == right[i].second) continue;
    const double a = ToDouble(left[i].first, left[i].second);
    const double b = ToDouble(right[i].first, right[i].second);
    if (form.bound.within != 0) {
      const double x = ToDouble(form.sources[0].kind, input);
      if (!(std::fabs(x) <= form.bound.within)) continue;
    }
    if (!SameClass(a, b)) return false;
    if (std::isnan(a)) continue;
    const double ulp = Ulp(left[i].first, a);
    const double reach = std::max({form.bound.relative * std::fabs(a), form.bound.absolute, form.bound.ulps * ulp}) + ulp / 2;
    if (!(std::fabs(a - b) <= reach)) return false;
  }
  return true;
}

std::vector<std::string> FlatKinds(const std::vector<FormOperand>& operands) {
  std::vector<std::string> kinds;
  for (const FormOperand& operand : operands) kinds.insert(kinds.end(), static_cast<std::size_t>(operand.registers()), operand.kind);
  return kinds;
}

class Conformance : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    const std::string folder = std::string(ASSAY_SOURCE_DIR) + "/tests/conformance/";
    const auto forms_text = ReadFile(folder + "forms.txt");
    const auto header_text = ReadFile(folder + "h200.json");
    const auto data = ReadFile(folder + "h200.bin");
    ASSERT_TRUE(forms_text && header_text && data);
    const auto header = nlohmann::json::parse(*header_text);
    std::map<std::string, Form> by_name;
    for (Form& form : ParseForms(*forms_text)) by_name[form.name] = std::move(form);
    std::size_t at = 0;
    for (const auto& row : header["forms"]) {
      const auto found = by_name.find(row[0]);
      ASSERT_NE(found, by_name.end()) << row[0] << " was recorded, but is no form any more";
      Recorded recorded{.form = found->second, .inputs = InputsOf(found->second), .outputs = {}};
      ASSERT_EQ(DigestInputs(recorded.inputs), row[1]) << row[0];
      const std::size_t start = at;
      for (const std::string& kind : FlatKinds(recorded.form.destinations)) {
        std::vector<u64> lanes;
        const auto bytes = static_cast<std::size_t>(StoredBytes(kind));
        for (int i = 0; i < recorded.form.threads; ++i, at += bytes) {
          ASSERT_LE(at + bytes, data->size());
          u64 value = 0;
          std::memcpy(&value, data->data() + at, bytes);
          lanes.push_back(value);
        }
        recorded.outputs.push_back(std::move(lanes));
      }
      const auto* const bytes = reinterpret_cast<const std::uint8_t*>(data->data());
      ASSERT_EQ(DigestBytes({bytes + start, at - start}), row[2]) << row[0];
      all_.push_back(std::move(recorded));
    }
    ASSERT_EQ(at, data->size());
  }
  static std::vector<Recorded> all_;
};
std::vector<Recorded> Conformance::all_;

std::string Describe(const Recorded& recorded, const Outputs& outputs, std::size_t thread) {
  std::string text = "  thread " + std::to_string(thread) + ":";
  char buffer[32];
  for (const auto& lanes : recorded.inputs) {
    std::snprintf(buffer, sizeof buffer, " %llx", static_cast<unsigned long long>(lanes[thread]));
    text += buffer;
  }
  text += " -> emulator";
  for (const auto& lanes : outputs.values) {
    std::snprintf(buffer, sizeof buffer, " %llx", static_cast<unsigned long long>(lanes[thread]));
    text += buffer;
  }
  text += ", hardware";
  for (const auto& lanes : recorded.outputs) {
    std::snprintf(buffer, sizeof buffer, " %llx", static_cast<unsigned long long>(lanes[thread]));
    text += buffer;
  }
  return text + "\n";
}

TEST_F(Conformance, HandlersAgreeWithHardware) {
  int exact = 0;
  int approximate = 0;
  int tensor = 0;
  int failed = 0;
  std::map<std::string, int> uncovered;
  for (const Recorded& recorded : all_) {
    if (recorded.form.layout_probe) continue;
    const auto run = RunForm(recorded.form, recorded.inputs);
    ASSERT_TRUE(run) << recorded.form.name << ": " << ToString(run.error());
    if (!run->covered) {
      ++uncovered[run->uncovered];
      continue;
    }
    const std::vector<std::string> kinds = FlatKinds(recorded.form.destinations);
    int mismatches = 0;
    std::string detail;
    for (std::size_t thread = 0; thread < static_cast<std::size_t>(recorded.form.threads); ++thread) {
      bool agrees = true;
      for (std::size_t r = 0; r < kinds.size(); ++r) {
        const u64 emulated = run->values[r][thread];
        const u64 hardware = recorded.outputs[r][thread];
        if (emulated == hardware) continue;
        agrees = recorded.form.bound.approximate() &&
                 Within(recorded.form, kinds[r], emulated, hardware, recorded.inputs[0][thread]);
        if (!agrees) break;
      }
      if (!agrees && mismatches++ < 3) detail += Describe(recorded, *run, thread);
    }
    if (mismatches != 0) {
      ++failed;
      ADD_FAILURE() << recorded.form.name << ": " << mismatches << " of " << recorded.form.threads << " differ\n" << detail;
      continue;
    }
    ++(recorded.form.bound.tensor ? tensor : recorded.form.bound.approximate() ? approximate : exact);
  }
  std::printf("conformant with an H200: %d forms (%d exact, %d approximate within their bound, %d tensor-core); %d differ\n",
              exact + approximate + tensor, exact, approximate, tensor, failed);
  for (const auto& [mnemonic, count] : uncovered) std::printf("no handler here: %s (%d forms)\n", mnemonic.c_str(), count);
}

}  // namespace
}  // namespace assay::conformance
