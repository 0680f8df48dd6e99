#include "importers/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "base/rng.h"
#include "validator/cases/shapes.h"

namespace assay::importers {
namespace {

constexpr std::int64_t kLargestExtent = 24;
constexpr std::int64_t kMostElements = 1 << 15;

/// Elements of hexadecimal f64, little end first.
Result<std::vector<double>> Doubles(const std::string& text, const std::string& place) {
  const auto digit = [](char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
  };
  std::vector<double> values;
  if (text.size() % 16 != 0) return Fail(ErrorKind::kMalformedInput, "are no numbers", place);
  for (std::size_t at = 0; at < text.size(); at += 16) {
    std::uint64_t bits = 0;
    for (std::size_t byte = 0; byte < 8; ++byte) {
      const int high = digit(text[at + 2 * byte]), low = digit(text[at + 2 * byte + 1]);
      if (high < 0 || low < 0) return Fail(ErrorKind::kMalformedInput, "are no numbers", place);
      bits |= static_cast<std::uint64_t>(16 * high + low) << (8 * byte);
    }
    values.push_back(std::bit_cast<double>(bits));
  }
  return values;
}

void Compare(const std::string& name, const oracle::OutputTruth& truth,
             const std::vector<double>& torch, const std::string& where, Agreement& agreement) {
  double scale = 0;
  for (const double value : torch) {
    if (std::isfinite(value)) scale = std::max(scale, std::fabs(value));
  }
  double worst = torch.size() == truth.value.size() ? 0 : INFINITY;
  for (std::size_t i = 0; i < torch.size() && i < truth.value.size(); ++i) {
    const double a = truth.value[i], b = torch[i];
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    if (!std::isfinite(a) || !std::isfinite(b) || truth.exact) {
      worst = INFINITY;
    } else {
      // Sums that cancel are as exact as what they are made of.
      worst = std::max(worst, std::fabs(a - b) / std::max(std::fabs(b), scale));
    }
  }
  if (worst >= agreement.worst) {
    agreement.worst = worst;
    agreement.output = name;
    agreement.where = where;
  }
}

}  // namespace

std::vector<cases::Case> CheckCases(const ops::Instance& instance, std::size_t count,
                                    std::uint64_t seed) {
  std::vector<cases::Case> found;
  for (std::uint64_t attempt = 0; attempt < 400 * count && found.size() < count; ++attempt) {
    Rng rng(DeriveSeed(seed + attempt, "import check"));
    cases::Case value;
    value.seed = rng.Below(1u << 30);
    value.origin = "random";
    // Later attempts try smaller ones: products of many axes grow fast.
    const std::int64_t reach = kLargestExtent >> std::min<std::uint64_t>(attempt / (40 * count), 3);
    for (const ops::Axis& axis : instance.op.axes) {
      if (axis.kind != ops::Axis::Kind::kVariable) continue;
      const std::int64_t high = std::min(axis.max, axis.min + reach);
      std::int64_t drawn = rng.Between(axis.min, high);
      if (rng.Below(3) == 0)
        drawn = std::clamp<std::int64_t>(8 * ((drawn + 7) / 8), axis.min, axis.max);
      value.axes[axis.name] = drawn;
    }
    if (!ops::ResolveAxes(instance.op, value.axes)) {
      // Constraints may leave little: the nearest extents that they admit.
      auto near = attempt < 40 * count
                      ? Result<ops::AxisValues>(Fail(ErrorKind::kUnsupported, "later", ""))
                      : cases::SolveAxes(instance.op, {}, value.axes);
      if (!near) continue;
      value.axes = *std::move(near);
    }
    if (cases::TotalElements(instance, value.axes) > kMostElements && attempt < 399 * count)
      continue;
    found.push_back(std::move(value));
  }
  return found;
}

Result<Agreement> CheckImport(const Problem& problem, const ops::Instance& instance,
                              oracle::Oracle& oracle, const Python& python,
                              const RunOptions& options, std::size_t count, std::uint64_t seed) {
  const std::vector<cases::Case> all = CheckCases(instance, count, seed);
  if (all.empty()) {
    return Fail(ErrorKind::kUnsupported, "no small shape satisfies the constraints",
                instance.op.folder.string());
  }
  std::vector<std::byte> data;
  std::vector<cases::Materialised> inputs;
  Json asked = Json::array();
  for (const cases::Case& value : all) {
    ASSAY_TRY(cases::Materialised made, oracle.Materialise(instance, value));
    Json given = Json::object();
    for (const auto& [name, tensor] : std::as_const(made.inputs)) {
      const std::span<const std::byte> bytes = tensor.memory.bytes().first(
          static_cast<std::size_t>(tensor.elements) * SizeOf(tensor.dtype));
      given[name] = {{"offset", data.size()},
                     {"bytes", bytes.size()},
                     {"dtype", Name(tensor.dtype)},
                     {"shape", tensor.shape}};
      data.insert(data.end(), bytes.begin(), bytes.end());
    }
    asked.push_back({{"inputs", std::move(given)}, {"axes", made.axes}});
    inputs.push_back(std::move(made));
  }
  Json request = RequestFor(problem);
  request["check"] = {{"cases", std::move(asked)}};
  ASSAY_TRY(const Json answer,
            RunInJail(python, problem.source, std::move(request), data, options));
  const std::string place = "what torch computed";
  if (!answer.is_object() || !answer.contains("cases") || !answer["cases"].is_array() ||
      answer["cases"].size() != all.size()) {
    if (answer.is_object() && answer.contains("refused"))
      return std::unexpected(ReadAnswer(answer, problem).error());
    return Fail(ErrorKind::kMalformedInput, "is not one answer a case", place);
  }
  Agreement agreement;
  for (std::size_t i = 0; i < all.size(); ++i) {
    ASSAY_TRY(const auto truth, oracle.Evaluate(instance, all[i], inputs[i]));
    const Json& torch = answer["cases"][i];
    for (const ops::TensorSpec& spec : instance.op.outputs) {
      // Of equal scores either side may name another one.
      if (spec.relation.kind == ops::Relation::Kind::kChoice) continue;
      const auto found = truth->outputs.find(spec.name);
      if (found == truth->outputs.end() || !torch.is_object() || !torch.contains(spec.name) ||
          !torch[spec.name].is_string()) {
        return Fail(ErrorKind::kMalformedInput, fmt::format("lacks the output '{}'", spec.name),
                    place);
      }
      ASSAY_TRY(const auto values, Doubles(torch[spec.name].get<std::string>(), place));
      Compare(spec.name, found->second, values, cases::Describe(all[i], instance), agreement);
    }
    ++agreement.cases;
  }
  agreement.agrees = agreement.worst <= kAgreement;
  return agreement;
}

}  // namespace assay::importers
