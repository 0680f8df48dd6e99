#include "ops/prelude.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/digest.h"
#include "ops/prelude_text.h"

namespace assay::ops {
namespace {

struct TypeNames {
  DType type;
  std::string_view candidate;
  std::string_view reference;
};
constexpr std::array kTypeNames = {
    TypeNames{DType::kBool, "bool", "bool"},
    TypeNames{DType::kI8, "signed char", "signed char"},
    TypeNames{DType::kU8, "unsigned char", "unsigned char"},
    TypeNames{DType::kI16, "short", "short"},
    TypeNames{DType::kU16, "unsigned short", "unsigned short"},
    TypeNames{DType::kI32, "int", "int"},
    TypeNames{DType::kU32, "unsigned int", "unsigned int"},
    TypeNames{DType::kI64, "long long", "long long"},
    TypeNames{DType::kU64, "unsigned long long", "unsigned long long"},
    TypeNames{DType::kF8E4M3, "__nv_fp8_e4m3", "assay::f8e4m3"},
    TypeNames{DType::kF8E5M2, "__nv_fp8_e5m2", "assay::f8e5m2"},
    TypeNames{DType::kBF16, "__nv_bfloat16", "assay::bf16"},
    TypeNames{DType::kF16, "__half", "assay::f16"},
    TypeNames{DType::kF32, "float", "assay::f32"},
    TypeNames{DType::kF64, "double", "double"},
};

const TypeNames& NamesOf(DType type) {
  const auto found = std::ranges::find(kTypeNames, type, &TypeNames::type);
  ASSAY_CHECK(found != kTypeNames.end());
  return *found;
}

}  // namespace

const std::map<std::string, std::string>& PreludeHeaders() {
  static const std::map<std::string, std::string> headers = [] {
    std::map<std::string, std::string> texts;
    for (const PreludeText& file : kPreludeTexts) texts.emplace(file.name, file.text);
    return texts;
  }();
  return headers;
}

const std::string& PreludeDigest() {
  static const std::string digest = [] {
    std::string all;
    for (const auto& [name, text] : PreludeHeaders()) all += name + Sha256Hex(text);
    return Sha256Hex(all);
  }();
  return digest;
}

std::vector<std::string> CandidateDefines(const Instance& instance) {
  std::vector<std::string> defines;
  for (const auto& [variable, type] : instance.binding) {
    defines.push_back(fmt::format("ASSAY_{}={}", variable, NamesOf(type).candidate));
  }
  return defines;
}

std::vector<std::string> ReferenceDefines(const Instance& instance) {
  std::vector<std::string> defines;
  for (const auto& [variable, type] : instance.binding) {
    defines.push_back(fmt::format("ASSAY_{}={}", variable, NamesOf(type).reference));
  }
  return defines;
}

}  // namespace assay::ops
