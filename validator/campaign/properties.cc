#include "validator/campaign/properties.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "validator/campaign/transforms.h"
#include "validator/cases/shapes.h"

namespace assay::campaign {
namespace {

bool Agree(double expected, double got, double allowance) {
  if (std::isnan(expected) || std::isnan(got)) return std::isnan(expected) && std::isnan(got);
  return expected == got || std::fabs(expected - got) <= allowance;
}

std::vector<std::int64_t> PlaceOf(const Shape& shape, std::int64_t index) {
  std::vector<std::int64_t> place(shape.size());
  for (std::size_t d = shape.size(); d-- > 0;) {
    place[d] = index % shape[d];
    index /= shape[d];
  }
  return place;
}

using Runs = std::vector<std::shared_ptr<const CaseRun>>;          ///< Base, then twins.
using Truths = std::vector<std::shared_ptr<const oracle::Truth>>;  ///< Base, then twins; or none.

double AllowanceOf(const oracle::Truth& truth, const std::string& output, std::int64_t index) {
  return truth.outputs.find(output)->second.allowance[static_cast<std::size_t>(index)];
}

double ValueOf(const oracle::Truth& truth, const std::string& output, std::int64_t index) {
  return truth.outputs.find(output)->second.value[static_cast<std::size_t>(index)];
}

/// The first element of each output that is not what the twins say.
void Compare(const ops::Instance& instance, const std::string& text, const Variant& variant,
             const Runs& runs, const Truths& truths, std::vector<Finding>& findings) {
  for (const ops::TensorSpec& spec : instance.op.outputs) {
    if (!truths.empty() && !spec.relation.HoldsElements()) continue;
    const Tensor& base = runs[0]->kept.find(spec.name)->second;
    for (std::int64_t i = 0; i < base.elements; ++i) {
      const auto mapped = variant.map(spec, base.shape, i);
      if (!mapped) continue;
      const double expected = base.At(i) * mapped->factor;
      double allowance =
          truths.empty() ? 0 : mapped->factor * AllowanceOf(*truths[0], spec.name, i);
      double got = 0;
      double true_twins = 0;
      bool inside = mapped->index >= 0;
      for (std::size_t k = 1; k < runs.size() && inside; ++k) {
        const Tensor& twin = runs[k]->kept.find(spec.name)->second;
        inside = mapped->index < twin.elements;
        if (!inside) break;
        got += twin.At(mapped->index);
        if (truths.empty()) continue;
        allowance += AllowanceOf(*truths[k], spec.name, mapped->index);
        true_twins += ValueOf(*truths[k], spec.name, mapped->index);
      }
      if (!inside) continue;
      // Near ties may have been chosen otherwise for the twins: then other values follow.
      if (!truths.empty() && instance.op.Chooses() &&
          !Agree(ValueOf(*truths[0], spec.name, i) * mapped->factor, true_twins, allowance))
        continue;
      if (mapped->factor != 1 && IsFloat(base.dtype)) {
        // Beyond the range there is no multiple; below the normal numbers it is rounded otherwise.
        if (std::fabs(expected) > MaxFinite(base.dtype)) continue;
        if (std::fabs(expected) <= 2 * MinNormal(base.dtype))
          allowance += mapped->factor * UlpAt(base.dtype, 0);
      }
      if (Agree(expected, got, allowance)) continue;
      Finding finding;
      finding.kind = FindingKind::kPropertyBroken;
      finding.message =
          fmt::format("{} does not hold: {} is {} where the transformed inputs give {}", text,
                      spec.name, expected, got);
      finding.element = ElementPlace{.output = spec.name,
                                     .index = PlaceOf(base.shape, i),
                                     .expected = expected,
                                     .got = got,
                                     .allowance = allowance};
      finding.cause =
          "the output depends on more than the op says: other rows, positions or magnitudes";
      findings.push_back(std::move(finding));
      break;
    }
  }
}

void SetTrouble(const CaseRun& run, PropertyCheck& check) {
  check.unending = run.report.stop == Stop::kStepLimit && run.plan_findings.empty() &&
                   run.report.findings.empty();
  check.trouble = run.probe;
}

/// Do all inputs hold their literals as they stand, neither rounded nor limited?
bool IsVerbatim(const cases::Case& value, const cases::Materialised& filled) {
  for (const auto& [input, profile] : value.profiles) {
    const auto tensor = filled.inputs.find(input);
    if (profile.kind != "literal" || tensor == filled.inputs.end()) continue;
    if (static_cast<std::size_t>(tensor->second.elements) != profile.literal.size()) return false;
    for (std::size_t i = 0; i < profile.literal.size(); ++i) {
      if (!Agree(profile.literal[i], tensor->second.At(static_cast<std::int64_t>(i)), 0))
        return false;
    }
  }
  return true;
}

/// A run that another gate has something to say about tells nothing here.
bool Usable(const CaseRun& run) {
  return run.report.stop == Stop::kCompleted && run.plan_findings.empty() &&
         run.report.findings.empty();
}

}  // namespace

Result<PropertyCheck> CheckProperty(const ops::Instance& instance, const ops::Property& property,
                                    const cases::Probe& probe, const Runner& runner,
                                    oracle::Oracle& oracle, std::shared_ptr<const CaseRun> known) {
  ASSAY_TRY_VOID(ops::CheckProperty(instance.op, property, "/property"));
  PropertyCheck check;
  const auto rows = TransformRows();
  const auto row = std::ranges::find(rows, property.name, &TransformRow::property);
  if (row == rows.end()) {
    check.not_applied = "the campaign checks it";
    return check;
  }
  ASSAY_TRY(const cases::Materialised filled, oracle.Materialise(instance, probe.case_));
  const auto base = cases::SpellOut(instance, probe.case_);
  if (!base) {
    check.not_applied = "the case is too large to be spelled out";
    return check;
  }
  const auto run = [&](const cases::Case& value) -> Result<std::shared_ptr<const CaseRun>> {
    cases::Probe one = probe;
    one.case_ = value;
    Wants wants;
    wants.compare = false;
    wants.keep_outputs = true;
    CaseRun done = runner.Run(one, wants);
    check.steps += done.steps;
    if (done.error) return std::unexpected(*done.error);
    return std::make_shared<const CaseRun>(std::move(done));
  };
  const auto run_base = [&]() -> Result<std::shared_ptr<const CaseRun>> {
    if (known != nullptr) {
      check.known_steps = known->steps;
      return known;
    }
    ASSAY_TRY(check.base, run(*base));
    return check.base;
  };
  Runs runs;
  if (row->needs_outputs) {
    ASSAY_TRY(auto first, run_base());
    if (!Usable(*first)) {
      SetTrouble(*first, check);
      return check;
    }
    runs.push_back(std::move(first));
  }
  const auto variant = row->transform(
      {instance, property.arguments, *base, filled, runs.empty() ? nullptr : &runs[0]->kept});
  if (!variant) {
    check.not_applied = "the case is too small for the property, or the op refuses its twins";
    return check;
  }
  std::vector<cases::Case> all = {variant->base.value_or(*base)};
  all.insert(all.end(), variant->twins.begin(), variant->twins.end());
  std::vector<cases::Materialised> inputs;
  for (const cases::Case& value : all) {
    ASSAY_TRY(cases::Materialised each, oracle.Materialise(instance, value));
    if (variant->verbatim && !IsVerbatim(value, each)) {
      check.not_applied = "the dtype or the domain would change the transformed values";
      return check;
    }
    inputs.push_back(std::move(each));
  }
  while (runs.size() < all.size()) {
    const bool as_it_stands = runs.empty() && !variant->base;
    ASSAY_TRY(auto next, as_it_stands ? run_base() : run(all[runs.size()]));
    if (!Usable(*next)) {
      SetTrouble(*next, check);
      return check;
    }
    runs.push_back(std::move(next));
  }
  // Without the promise of determinism, data may decide who adds first.
  check.exact = variant->exact && ops::IsDeterministic(instance.op);
  check.applied = true;
  Truths truths;
  for (std::size_t i = 0; i < all.size() && !check.exact; ++i) {
    ASSAY_TRY(auto truth, oracle.EvaluateFor(instance, all[i], inputs[i], runs[i]->kept));
    truths.push_back(std::move(truth));
  }
  Compare(instance, ops::PropertyText(property), *variant, runs, truths, check.findings);
  return check;
}

}  // namespace assay::campaign
