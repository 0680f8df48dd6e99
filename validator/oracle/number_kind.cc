#include "validator/oracle/number_kind.h"

namespace assay::oracle {
namespace {

constexpr std::string_view kName = "assay_run";
// As in reference.cuh: no number that anything else is initialised with.
constexpr std::string_view kDefinition = "assay_run = 1934623233;";

}  // namespace

unsigned RunFlags(const NumberType& type) {
  return (type.independent ? 1u : 0u) | (type.in_order ? 2u : 0u);
}

Result<std::string> WithRunFlags(std::string_view ptx, unsigned flags) {
  const std::size_t at = ptx.find(kDefinition);
  if (at == std::string_view::npos) {
    if (ptx.find(kName) == std::string_view::npos) return std::string(ptx);
    return Fail(ErrorKind::kInternal, "the constant 'assay_run' is not defined as expected",
                "a compiled reference");
  }
  if (ptx.find(kDefinition, at + 1) != std::string_view::npos)
    return Fail(ErrorKind::kInternal, "the constant 'assay_run' is defined twice",
                "a compiled reference");
  std::string text(ptx.substr(0, at));
  text += std::string(kName) + " = " + std::to_string(flags) + ";";
  text += ptx.substr(at + kDefinition.size());
  return text;
}

}  // namespace assay::oracle
