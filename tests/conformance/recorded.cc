#include "tests/conformance/recorded.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/file.h"
#include "tests/conformance/golden.h"
#include "tests/conformance/inputs.h"

namespace assay::conformance {
namespace {

using u64 = std::uint64_t;

/// Kinds of floating-point results, by register kind.
double ToDouble(std::string_view kind, u64 bits) {
  if (kind == "f64" || kind == "m.f64") return __builtin_bit_cast(double, bits);
  if (kind == "f16") {
    const int exponent = static_cast<int>(bits >> 10 & 31);
    const double fraction = static_cast<double>(bits & 1023);
    const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
    if (exponent == 31) return fraction == 0 ? sign * INFINITY : NAN;
    return sign *
           (exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25));
  }
  if (kind == "bf16")
    return static_cast<double>(__builtin_bit_cast(float, static_cast<std::uint32_t>(bits << 16)));
  return static_cast<double>(__builtin_bit_cast(float, static_cast<std::uint32_t>(bits)));
}
/// One unit in the last place of `value` in the kind's format.
double Ulp(std::string_view kind, double value) {
  const int fraction = kind == "f64" || kind == "m.f64" ? 52
                       : kind == "f16"                  ? 10
                       : kind == "bf16"                 ? 7
                                                        : 23;
  const int lowest = kind == "f64" || kind == "m.f64" ? -1022 : kind == "f16" ? -14 : -126;
  if (value == 0 || !std::isfinite(value)) return std::ldexp(1.0, lowest - fraction);
  return std::ldexp(1.0, std::max(std::ilogb(value), lowest) - fraction);
}

std::vector<std::pair<std::string, u64>> Elements(const std::string& kind, u64 bits) {
  for (const auto& [packed, element] :
       {std::pair{"f16x2", "f16"}, {"bf16x2", "bf16"}, {"m.f16x2", "f16"}}) {
    if (kind == packed) return {{element, bits & 0xffff}, {element, bits >> 16}};
  }
  return {{kind == "m.f32" ? "f32" : kind, bits}};
}

bool SameClass(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  if (std::isinf(a) || std::isinf(b)) return a == b;
  return true;
}

std::optional<std::string> TextAt(const nlohmann::json& row, std::size_t index) {
  if (!row.is_array() || index >= row.size() || !row[index].is_string()) return std::nullopt;
  return row[index].get<std::string>();
}

}  // namespace

bool Within(const Form& form, const std::string& kind, u64 emulated, u64 hardware, u64 input) {
  if (!form.bound.tensor && kind != "f64") return false;
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
    const double reach =
        std::max({form.bound.relative * std::fabs(a), form.bound.absolute, form.bound.ulps * ulp}) +
        ulp / 2;
    if (!(std::fabs(a - b) <= reach)) return false;
  }
  return true;
}

std::vector<std::string> FlatKinds(const std::vector<FormOperand>& operands) {
  std::vector<std::string> kinds;
  for (const FormOperand& operand : operands)
    kinds.insert(kinds.end(), static_cast<std::size_t>(operand.registers()), operand.kind);
  return kinds;
}

Result<std::vector<Recorded>> ReadRecorded(const std::string& folder) {
  ASSAY_TRY(const std::string forms_text, ReadFile(folder + "forms.txt"));
  ASSAY_TRY(const std::string header_text, ReadFile(folder + "h200.json"));
  ASSAY_TRY(const std::string data, ReadFile(folder + "h200.bin"));
  const auto bad = [&](std::string message) {
    return std::unexpected(Error{ErrorKind::kMalformedInput, std::move(message),
                                 folder + "h200.json", "record again (CONTRIBUTING.md)"});
  };
  const auto header = nlohmann::json::parse(header_text, nullptr, false);
  if (!header.is_object() || !header.contains("forms")) return bad("no list of forms");
  std::map<std::string, Form> by_name;
  for (Form& form : ParseForms(forms_text)) by_name[form.name] = std::move(form);
  std::vector<Recorded> all;
  std::size_t at = 0;
  for (const auto& row : header["forms"]) {
    const auto name = TextAt(row, 0);
    const auto found = by_name.find(name.value_or(""));
    if (found == by_name.end())
      return bad("'" + name.value_or("") + "' was recorded, but is no form any more");
    Recorded recorded{.form = found->second, .inputs = InputsOf(found->second), .outputs = {}};
    if (TextAt(row, 1) != DigestInputs(recorded.inputs)) return bad("inputs of " + *name);
    const std::size_t start = at;
    for (const std::string& kind : FlatKinds(recorded.form.destinations)) {
      std::vector<u64> lanes;
      const auto bytes = static_cast<std::size_t>(StoredBytes(kind));
      for (int i = 0; i < recorded.form.threads; ++i, at += bytes) {
        if (at + bytes > data.size()) return bad("outputs of " + *name + " are missing");
        u64 value = 0;
        std::memcpy(&value, data.data() + at, bytes);
        lanes.push_back(value);
      }
      recorded.outputs.push_back(std::move(lanes));
    }
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(data.data());
    if (TextAt(row, 2) != DigestBytes({bytes + start, at - start}))
      return bad("outputs of " + *name);
    all.push_back(std::move(recorded));
  }
  if (at != data.size()) return bad("more outputs than forms");
  return all;
}

}  // namespace assay::conformance
