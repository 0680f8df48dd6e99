#include "validator/gates/properties.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "base/rng.h"
#include "validator/cases/shapes.h"

namespace assay::gates {
namespace {

struct Mapped {
  std::int64_t index = 0;
  double factor = 1;
};

/// The transformed case, and where each element of the base's outputs must be found again.
struct Variant {
  cases::Case twin;
  bool exact = true;
  std::function<std::optional<Mapped>(const ops::TensorSpec& output, const Shape& shape,
                                      std::int64_t index)>
      map;
};

struct Subject {
  const ops::Instance& instance;
  const std::vector<std::string>& arguments;
  const cases::Case& base;  ///< Inputs spelled out.
  const cases::Materialised& filled;
};

using Transform = std::optional<Variant> (*)(const Subject& subject);

struct PropertyRow {
  std::string_view name;
  std::size_t arguments;
  Transform transform;
};

std::optional<std::size_t> DimensionOf(const ops::TensorSpec& spec, const std::string& axis) {
  for (std::size_t d = 0; d < spec.shape.size(); ++d) {
    if (spec.shape[d].text() == axis) return d;
  }
  return std::nullopt;
}

std::int64_t Inner(const Shape& shape, std::size_t dim) {
  std::int64_t inner = 1;
  for (std::size_t d = dim + 1; d < shape.size(); ++d) inner *= shape[d];
  return inner;
}

std::int64_t Coordinate(const Shape& shape, std::size_t dim, std::int64_t index) {
  return index / Inner(shape, dim) % shape[dim];
}

std::vector<double>* LiteralOf(cases::Case& value, const std::string& input) {
  const auto found = value.profiles.find(input);
  return found == value.profiles.end() || found->second.kind != "literal" ? nullptr
                                                                          : &found->second.literal;
}

std::optional<Mapped> Same(const ops::TensorSpec&, const Shape&, std::int64_t index) {
  return Mapped{index, 1};
}

// One row stays; the values of the others are dealt out anew, and made larger.
std::optional<Variant> IndependentRows(const Subject& subject) {
  const std::string input = subject.arguments[0];
  const std::string axis = subject.arguments[1];
  const ops::TensorSpec* spec = subject.instance.op.FindInput(input);
  if (spec == nullptr) return std::nullopt;
  const auto dim = DimensionOf(*spec, axis);
  const Shape& shape = subject.filled.inputs.find(input)->second.shape;
  if (!dim || shape[*dim] < 2) return std::nullopt;
  const std::int64_t kept =
      static_cast<std::int64_t>(Mix64(subject.base.seed) % static_cast<std::uint64_t>(shape[*dim]));
  Variant variant{.twin = subject.base, .exact = true, .map = {}};
  std::vector<double>* values = LiteralOf(variant.twin, input);
  if (values == nullptr) return std::nullopt;
  const bool index = spec->domain.kind == ops::Domain::Kind::kIndex;
  for (std::size_t i = 0; i < values->size(); ++i) {
    if (Coordinate(shape, *dim, static_cast<std::int64_t>(i)) == kept) continue;
    (*values)[i] = index ? 0.0 : -4.0 * (*values)[i] + 1.0;
  }
  variant.map = [axis, kept](const ops::TensorSpec& output, const Shape& extents,
                             std::int64_t at) -> std::optional<Mapped> {
    const auto along = DimensionOf(output, axis);
    if (!along || Coordinate(extents, *along, at) != kept) return std::nullopt;
    return Mapped{at, 1};
  };
  return variant;
}

// Everything along the axis in reverse order.
std::optional<Variant> PermutationEquivariant(const Subject& subject) {
  const std::string axis = subject.arguments[0];
  Variant variant{.twin = subject.base, .exact = true, .map = {}};
  const auto reversed = [](const Shape& shape, std::size_t dim, std::int64_t index) {
    return index + (shape[dim] - 1 - 2 * Coordinate(shape, dim, index)) * Inner(shape, dim);
  };
  bool any = false;
  for (const ops::TensorSpec& spec : subject.instance.op.inputs) {
    const auto dim = DimensionOf(spec, axis);
    std::vector<double>* values = LiteralOf(variant.twin, spec.name);
    if (!dim || spec.IsGenerated()) continue;
    if (values == nullptr) return std::nullopt;
    const Shape& shape = subject.filled.inputs.find(spec.name)->second.shape;
    const std::vector<double> before = *values;
    for (std::size_t i = 0; i < before.size(); ++i) {
      (*values)[static_cast<std::size_t>(reversed(shape, *dim, static_cast<std::int64_t>(i)))] =
          before[i];
    }
    any = any || shape[*dim] > 1;
  }
  if (!any) return std::nullopt;
  variant.map = [axis, reversed](const ops::TensorSpec& output, const Shape& shape,
                                 std::int64_t at) -> std::optional<Mapped> {
    const auto along = DimensionOf(output, axis);
    return Mapped{along ? reversed(shape, *along, at) : at, 1};
  };
  return variant;
}

std::optional<Variant> Scaled(const Subject& subject, double factor, double shift) {
  Variant variant{.twin = subject.base, .exact = false, .map = Same};
  std::vector<double>* values = LiteralOf(variant.twin, subject.arguments[0]);
  if (values == nullptr) return std::nullopt;
  for (double& value : *values) value = value * factor + shift;
  return variant;
}

std::optional<Variant> ScaleEquivariant(const Subject& subject) {
  auto variant = Scaled(subject, 2, 0);
  if (!variant) return std::nullopt;
  variant->exact = true;
  const std::string name = subject.arguments[1];
  variant->map = [name](const ops::TensorSpec& output, const Shape&,
                        std::int64_t at) -> std::optional<Mapped> {
    if (output.name != name) return std::nullopt;
    return Mapped{at, 2};
  };
  return variant;
}

std::optional<Variant> ScaleInvariant(const Subject& subject) { return Scaled(subject, 2, 0); }
// A power of two: exact for values of ordinary size.
std::optional<Variant> ShiftInvariant(const Subject& subject) { return Scaled(subject, 1, 4); }

std::optional<Variant> BatchSplit(const Subject& subject) {
  const std::string axis = subject.arguments[0];
  Variant variant{.twin = subject.base, .exact = false, .map = {}};
  const auto extent = variant.twin.axes.find(axis);
  if (extent == variant.twin.axes.end() || extent->second < 2) return std::nullopt;
  const std::int64_t half = extent->second / 2;
  extent->second = half;
  if (!ops::ResolveAxes(subject.instance.op, variant.twin.axes)) return std::nullopt;
  for (const ops::TensorSpec& spec : subject.instance.op.inputs) {
    const auto dim = DimensionOf(spec, axis);
    if (!dim || spec.IsGenerated()) continue;
    std::vector<double>* values = LiteralOf(variant.twin, spec.name);
    if (values == nullptr) return std::nullopt;
    const Shape& shape = subject.filled.inputs.find(spec.name)->second.shape;
    std::vector<double> kept;
    for (std::size_t i = 0; i < values->size(); ++i) {
      if (Coordinate(shape, *dim, static_cast<std::int64_t>(i)) < half)
        kept.push_back((*values)[i]);
    }
    *values = std::move(kept);
  }
  variant.map = [axis, half](const ops::TensorSpec& output, const Shape& shape,
                             std::int64_t at) -> std::optional<Mapped> {
    const auto along = DimensionOf(output, axis);
    if (!along || Coordinate(shape, *along, at) >= half) return std::nullopt;
    const std::int64_t inner = Inner(shape, *along);
    const std::int64_t outer = at / (inner * shape[*along]);
    return Mapped{at - outer * inner * (shape[*along] - half), 1};
  };
  return variant;
}

constexpr std::array kRows = {
    PropertyRow{"independent_rows", 2, IndependentRows},
    PropertyRow{"permutation_equivariant", 1, PermutationEquivariant},
    PropertyRow{"scale_equivariant", 2, ScaleEquivariant},
    PropertyRow{"scale_invariant", 1, ScaleInvariant},
    PropertyRow{"shift_invariant", 1, ShiftInvariant},
    PropertyRow{"batch_split", 1, BatchSplit},
};
constexpr std::array<std::string_view, kRows.size() + 2> kNames = [] {
  std::array<std::string_view, kRows.size() + 2> names{"deterministic", "any_alignment"};
  for (std::size_t i = 0; i < kRows.size(); ++i) names[i + 2] = kRows[i].name;
  return names;
}();

bool Agree(double expected, double got, double allowance) {
  if (std::isnan(expected) || std::isnan(got)) return std::isnan(expected) && std::isnan(got);
  return expected == got || std::fabs(expected - got) <= allowance;
}

struct Sides {
  const CaseRun& base;
  const CaseRun& twin;
  const oracle::Truth* base_truth = nullptr;  ///< Null when bits must agree.
  const oracle::Truth* twin_truth = nullptr;
};

void Compare(const ops::Instance& instance, const std::string& text, const Variant& variant,
             const Sides& sides, std::vector<Finding>& findings) {
  for (const ops::TensorSpec& spec : instance.op.outputs) {
    const Tensor& base = sides.base.kept.find(spec.name)->second;
    const Tensor& twin = sides.twin.kept.find(spec.name)->second;
    for (std::int64_t i = 0; i < base.elements; ++i) {
      const auto mapped = variant.map(spec, base.shape, i);
      if (!mapped || mapped->index < 0 || mapped->index >= twin.elements) continue;
      double allowance = 0;
      if (sides.base_truth != nullptr) {
        allowance = mapped->factor * sides.base_truth->outputs.find(spec.name)
                                         ->second.allowance[static_cast<std::size_t>(i)] +
                    sides.twin_truth->outputs.find(spec.name)
                        ->second.allowance[static_cast<std::size_t>(mapped->index)];
      }
      const double expected = base.At(i) * mapped->factor;
      const double got = twin.At(mapped->index);
      if (Agree(expected, got, allowance)) continue;
      Finding finding;
      finding.kind = FindingKind::kPropertyBroken;
      ElementPlace place{.output = spec.name,
                         .index = {},
                         .expected = expected,
                         .got = got,
                         .allowance = allowance};
      for (std::size_t d = 0; d < base.shape.size(); ++d)
        place.index.push_back(Coordinate(base.shape, d, i));
      finding.message =
          fmt::format("{} does not hold: {} is {} where the transformed inputs give {}", text,
                      spec.name, expected, got);
      finding.element = std::move(place);
      finding.cause =
          "the output depends on more than the op says: other rows, positions or magnitudes";
      findings.push_back(std::move(finding));
      break;
    }
  }
}

}  // namespace

std::span<const std::string_view> KnownProperties() { return kNames; }

std::string PropertyText(const ops::Property& property) {
  std::string text = property.name;
  for (const std::string& argument : property.arguments) text += " " + argument;
  return text;
}

ops::Property PropertyFromText(std::string_view text) {
  ops::Property property;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    if (property.name.empty()) {
      property.name = std::string(text.substr(0, end));
    } else {
      property.arguments.emplace_back(text.substr(0, end));
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return property;
}

Result<PropertyCheck> CheckProperty(const ops::Instance& instance, const ops::Property& property,
                                    const cases::Probe& probe, const Runner& runner,
                                    oracle::Oracle& oracle) {
  const auto row = std::ranges::find(kRows, property.name, &PropertyRow::name);
  if (row == kRows.end() || row->arguments != property.arguments.size()) {
    const std::vector<std::string> names(kNames.begin(), kNames.end());
    const std::string nearest = Nearest(property.name, names);
    return Fail(ErrorKind::kMalformedInput,
                "the property '" + PropertyText(property) + "' is not known",
                "op.json: /properties", nearest.empty() ? "" : "did you mean '" + nearest + "'?");
  }
  PropertyCheck check;
  ASSAY_TRY(const cases::Materialised filled, oracle.Materialise(instance, probe.case_));
  const auto base = cases::SpellOut(instance, probe.case_);
  if (!base) return check;
  const auto variant = row->transform({instance, property.arguments, *base, filled});
  if (!variant) return check;
  cases::Probe first = probe;
  first.case_ = *base;
  cases::Probe second = probe;
  second.case_ = variant->twin;
  Wants wants;
  wants.compare = false;
  wants.keep_outputs = true;
  const CaseRun base_run = runner.Run(first, wants);
  const CaseRun twin_run = runner.Run(second, wants);
  check.steps = base_run.steps + twin_run.steps;
  for (const CaseRun* run : {&base_run, &twin_run}) {
    if (run->error) return std::unexpected(*run->error);
    // Other gates speak of what is wrong with a single run.
    if (run->report.stop != Stop::kCompleted || !run->plan_findings.empty()) return check;
  }
  check.applied = true;
  if (variant->exact) {
    Compare(instance, PropertyText(property), *variant, {base_run, twin_run}, check.findings);
    return check;
  }
  ASSAY_TRY(const cases::Materialised twin_filled, oracle.Materialise(instance, second.case_));
  ASSAY_TRY(const auto base_truth, oracle.Evaluate(instance, first.case_, filled));
  ASSAY_TRY(const auto twin_truth, oracle.Evaluate(instance, second.case_, twin_filled));
  Compare(instance, PropertyText(property), *variant,
          {base_run, twin_run, base_truth.get(), twin_truth.get()}, check.findings);
  return check;
}

}  // namespace assay::gates
