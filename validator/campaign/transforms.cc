#include "validator/campaign/transforms.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "base/dtype.h"
#include "base/rng.h"
#include "ops/properties.h"

namespace assay::campaign {
namespace {

using ops::DimensionOf;

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

Variant TwinOf(const Subject& subject) {
  Variant variant;
  variant.twins.push_back(subject.base);
  return variant;
}

std::optional<Mapped> Same(const ops::TensorSpec&, const Shape&, std::int64_t index) {
  return Mapped{index, 1};
}

// What becomes of the other rows' values: one of these, drawn by the seed of the case. A kernel may
// let a row see its neighbours' signs, their zeros, or that they are larger or smaller.
constexpr std::array<double (*)(double), 4> kAlterations = {
    [](double value) { return -4.0 * value + 1.0; }, [](double) { return 0.0; },
    [](double value) { return 64.0 * value; }, [](double value) { return value / 64.0; }};

/// Which rows stay: one alone, or about half of them. One alone leaves its neighbours no company to
/// hide in; many show what befalls only some.
class KeptRows {
 public:
  KeptRows(std::uint64_t seed, std::int64_t rows)
      : seed_(Mix64(seed)),
        one_(static_cast<std::int64_t>(seed_ % static_cast<std::uint64_t>(rows))),
        altered_((one_ + 1) % rows),
        alone_(Mix64(seed_) % 2 == 0) {}
  bool Has(std::int64_t row) const {
    if (row == one_ || row == altered_ || alone_) return row == one_;
    return Mix64(seed_ ^ Mix64(static_cast<std::uint64_t>(row))) % 2 == 0;
  }

 private:
  std::uint64_t seed_;
  std::int64_t one_, altered_;
  bool alone_;
};

// Some rows stay, the others are altered.
std::optional<Variant> IndependentRows(const Subject& subject) {
  const std::string input = subject.arguments[0];
  const std::string axis = subject.arguments[1];
  const ops::TensorSpec* spec = subject.instance.op.FindInput(input);
  if (spec == nullptr) return std::nullopt;
  const auto dim = DimensionOf(*spec, axis);
  const Shape& shape = subject.filled.inputs.find(input)->second.shape;
  if (!dim || shape[*dim] < 2) return std::nullopt;
  const KeptRows kept(subject.base.seed, shape[*dim]);
  Variant variant = TwinOf(subject);
  std::vector<double>* values = LiteralOf(variant.twins[0], input);
  if (values == nullptr) return std::nullopt;
  const bool index = spec->domain.kind == ops::Domain::Kind::kIndex;
  const std::uint64_t drawn = DeriveSeed(subject.base.seed, "alteration") % kAlterations.size();
  for (std::size_t i = 0; i < values->size(); ++i) {
    if (kept.Has(Coordinate(shape, *dim, static_cast<std::int64_t>(i)))) continue;
    (*values)[i] = index ? 0.0 : kAlterations[drawn]((*values)[i]);
  }
  variant.map = [axis, kept](const ops::TensorSpec& output, const Shape& extents,
                             std::int64_t at) -> std::optional<Mapped> {
    const auto along = DimensionOf(output, axis);
    if (!along || !kept.Has(Coordinate(extents, *along, at))) return std::nullopt;
    return Mapped{at, 1};
  };
  return variant;
}

/// The outputs that follow the axis by one dimension or not at all.
std::set<std::string, std::less<>> Comparable(const Subject& subject, const std::string& axis) {
  std::set<std::string, std::less<>> names;
  for (const ops::TensorSpec& output : subject.instance.op.outputs) {
    if (!ops::AlsoHangsOn(subject.instance.op, output, axis)) names.insert(output.name);
  }
  return names;
}

// Everything along the axis in reverse order. An honest kernel may treat a row by where it lies (what
// of it is aligned, which of its parts another block takes), so that its last bits may differ there.
std::optional<Variant> PermutationEquivariant(const Subject& subject) {
  const std::string axis = subject.arguments[0];
  Variant variant = TwinOf(subject);
  variant.exact = false;
  const auto reversed = [](const Shape& shape, std::size_t dim, std::int64_t index) {
    return index + (shape[dim] - 1 - 2 * Coordinate(shape, dim, index)) * Inner(shape, dim);
  };
  bool any = false;
  for (const ops::TensorSpec& spec : subject.instance.op.inputs) {
    const auto dim = DimensionOf(spec, axis);
    std::vector<double>* values = LiteralOf(variant.twins[0], spec.name);
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
  variant.map = [comparable = Comparable(subject, axis), axis, reversed](
                    const ops::TensorSpec& output, const Shape& shape,
                    std::int64_t at) -> std::optional<Mapped> {
    if (!comparable.contains(output.name)) return std::nullopt;
    const auto along = DimensionOf(output, axis);
    return Mapped{along ? reversed(shape, *along, at) : at, 1};
  };
  return variant;
}

std::optional<Variant> Scaled(const Subject& subject) {
  Variant variant = TwinOf(subject);
  variant.exact = false;
  variant.verbatim = true;
  std::vector<double>* values = LiteralOf(variant.twins[0], subject.arguments[0]);
  if (values == nullptr) return std::nullopt;
  for (double& value : *values) value *= 2;
  variant.map = Same;
  return variant;
}

/// For one output alone.
auto Only(std::string name, double factor) {
  return [name = std::move(name), factor](const ops::TensorSpec& output, const Shape&,
                                          std::int64_t at) -> std::optional<Mapped> {
    if (output.name != name) return std::nullopt;
    return Mapped{at, factor};
  };
}

std::optional<Variant> ScaleEquivariant(const Subject& subject) {
  auto variant = Scaled(subject);
  if (!variant) return std::nullopt;
  // Powers of two are exact where the accumulator has room below.
  variant->exact = subject.instance.op.contract.accumulate == DType::kF32;
  variant->map = Only(subject.arguments[1], 2);
  return variant;
}

// The elements dealt out to two cases, zeros in their places: what they give adds up. The parts are
// exact, whatever the dtype.
std::optional<Variant> Linear(const Subject& subject) {
  Variant variant = TwinOf(subject);
  variant.twins.push_back(subject.base);
  variant.exact = false;
  variant.verbatim = true;
  std::vector<double>* first = LiteralOf(variant.twins[0], subject.arguments[0]);
  std::vector<double>* second = LiteralOf(variant.twins[1], subject.arguments[0]);
  if (first == nullptr || second == nullptr) return std::nullopt;
  for (std::size_t i = 0; i < first->size(); ++i)
    (Mix64(subject.base.seed ^ Mix64(i)) % 2 == 0 ? *first : *second)[i] = 0;
  variant.map = Only(subject.arguments[1], 1);
  return variant;
}

// Both the values and the shifted values must be ones that the dtype holds: the base takes what is
// left of the sum after its rounding.
std::optional<Variant> ShiftInvariant(const Subject& subject) {
  constexpr double kShift = 4;
  const ops::TensorSpec* spec = subject.instance.op.FindInput(subject.arguments[0]);
  if (spec == nullptr || !IsFloat(subject.instance.TypeOf(*spec))) return std::nullopt;
  Variant variant = TwinOf(subject);
  variant.base = subject.base;
  variant.exact = false;
  variant.verbatim = true;
  std::vector<double>* values = LiteralOf(*variant.base, spec->name);
  std::vector<double>* shifted = LiteralOf(variant.twins[0], spec->name);
  if (values == nullptr || shifted == nullptr) return std::nullopt;
  for (std::size_t i = 0; i < values->size(); ++i) {
    std::array<std::byte, 8> bytes{};
    StoreFromDouble(subject.instance.TypeOf(*spec), (*values)[i] + kShift, bytes.data());
    (*shifted)[i] = LoadAsDouble(subject.instance.TypeOf(*spec), bytes.data());
    (*values)[i] = (*shifted)[i] - kShift;
  }
  variant.map = Same;
  return variant;
}

// The output taken for the input.
std::optional<Variant> Idempotent(const Subject& subject) {
  const std::string& name = subject.arguments[0];
  const auto output = subject.outputs->find(subject.arguments[1]);
  const auto input = subject.filled.inputs.find(name);
  if (output == subject.outputs->end() || input == subject.filled.inputs.end() ||
      output->second.shape != input->second.shape)
    return std::nullopt;
  Variant variant = TwinOf(subject);
  variant.exact = false;
  variant.verbatim = true;
  std::vector<double>* values = LiteralOf(variant.twins[0], name);
  if (values == nullptr) return std::nullopt;
  for (std::size_t i = 0; i < values->size(); ++i)
    (*values)[i] = output->second.At(static_cast<std::int64_t>(i));
  variant.map = Only(subject.arguments[1], 1);
  return variant;
}

// Zeros appended along an axis.
std::optional<Variant> PaddingNeutral(const Subject& subject) {
  const std::string axis = subject.arguments[0];
  Variant variant = TwinOf(subject);
  variant.exact = false;
  variant.verbatim = true;
  cases::Case& twin = variant.twins[0];
  const auto extent = twin.axes.find(axis);
  if (extent == twin.axes.end()) return std::nullopt;
  const std::int64_t before = extent->second;
  if (before < 1 || before > INT64_MAX - 64) return std::nullopt;
  bool admitted = false;
  for (const std::int64_t more : {5, 1, 2, 4, 8, 16, 32, 64}) {
    extent->second = before + more;
    admitted = ops::ResolveAxes(subject.instance.op, twin.axes).has_value();
    if (admitted) break;
  }
  if (!admitted) return std::nullopt;
  const std::int64_t after = extent->second;
  for (const ops::TensorSpec& spec : subject.instance.op.inputs) {
    if (spec.IsGenerated()) continue;
    const auto dim = DimensionOf(spec, axis);
    if (!dim) continue;
    std::vector<double>* values = LiteralOf(twin, spec.name);
    if (values == nullptr) return std::nullopt;
    Shape shape = subject.filled.inputs.find(spec.name)->second.shape;
    const std::int64_t inner = Inner(shape, *dim);
    shape[*dim] = after;
    std::vector<double> padded;
    std::size_t next = 0;
    const auto count = static_cast<std::int64_t>(values->size()) / before * after;
    for (std::int64_t i = 0; i < count; ++i)
      padded.push_back(i / inner % after < before ? (*values)[next++] : 0.0);
    *values = std::move(padded);
  }
  variant.map = [comparable = Comparable(subject, axis), axis, before, after](
                    const ops::TensorSpec& output, const Shape& shape,
                    std::int64_t at) -> std::optional<Mapped> {
    if (!comparable.contains(output.name)) return std::nullopt;
    const auto along = DimensionOf(output, axis);
    if (!along) return Mapped{at, 1};
    const std::int64_t inner = Inner(shape, *along);
    return Mapped{at + at / (inner * before) * inner * (after - before), 1};
  };
  return variant;
}

std::optional<Variant> BatchSplit(const Subject& subject) {
  const std::string axis = subject.arguments[0];
  Variant variant = TwinOf(subject);
  variant.exact = false;
  const auto extent = variant.twins[0].axes.find(axis);
  if (extent == variant.twins[0].axes.end() || extent->second < 2) return std::nullopt;
  const std::int64_t half = extent->second / 2;
  extent->second = half;
  if (!ops::ResolveAxes(subject.instance.op, variant.twins[0].axes)) return std::nullopt;
  for (const ops::TensorSpec& spec : subject.instance.op.inputs) {
    const auto dim = DimensionOf(spec, axis);
    if (!dim || spec.IsGenerated()) continue;
    std::vector<double>* values = LiteralOf(variant.twins[0], spec.name);
    if (values == nullptr) return std::nullopt;
    const Shape& shape = subject.filled.inputs.find(spec.name)->second.shape;
    std::vector<double> kept;
    for (std::size_t i = 0; i < values->size(); ++i) {
      if (Coordinate(shape, *dim, static_cast<std::int64_t>(i)) < half)
        kept.push_back((*values)[i]);
    }
    *values = std::move(kept);
  }
  variant.map = [comparable = Comparable(subject, axis), axis, half](
                    const ops::TensorSpec& output, const Shape& shape,
                    std::int64_t at) -> std::optional<Mapped> {
    if (!comparable.contains(output.name)) return std::nullopt;
    const auto along = DimensionOf(output, axis);
    if (!along || Coordinate(shape, *along, at) >= half) return std::nullopt;
    const std::int64_t inner = Inner(shape, *along);
    const std::int64_t outer = at / (inner * shape[*along]);
    return Mapped{at - outer * inner * (shape[*along] - half), 1};
  };
  return variant;
}

}  // namespace

std::span<const TransformRow> TransformRows() {
  static constexpr TransformRow kRows[] = {
      {"independent_rows", false, IndependentRows},
      {"permutation_equivariant", false, PermutationEquivariant},
      {"scale_equivariant", false, ScaleEquivariant},
      {"linear", false, Linear},
      {"scale_invariant", false, Scaled},
      {"shift_invariant", false, ShiftInvariant},
      {"idempotent", true, Idempotent},
      {"padding_neutral", false, PaddingNeutral},
      {"batch_split", false, BatchSplit},
  };
  return kRows;
}

}  // namespace assay::campaign
