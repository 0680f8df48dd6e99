#include "validator/cases/profiles.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/repeating_memory.h"
#include "base/rng.h"
#include "validator/cases/profile_draw.h"

namespace assay::cases {
namespace {

using enum InputClass;

// Elements of a tensor of which none may be left untouched.
constexpr std::int64_t kMostDense = std::int64_t{1} << 28;

// Keeps a value inside the domain; for a range also after rounding to the dtype.
double Limit(const ops::Domain& domain, DType dtype, double value) {
  if (std::isnan(value)) return domain.allow_nan || !IsFloat(dtype) ? value : 0.0;
  if (IsFloat(dtype) && std::fabs(value) > MaxFinite(dtype) &&
      !(std::isinf(value) && domain.allow_infinity)) {
    value = std::copysign(MaxFinite(dtype), value);
  }
  if (domain.kind != ops::Domain::Kind::kRange || std::isinf(value)) return value;
  value = std::clamp(value, domain.low, domain.high);
  if (!IsFloat(dtype)) {
    return std::clamp(std::round(value), std::ceil(domain.low),
                      std::max(std::ceil(domain.low), std::floor(domain.high)));
  }
  std::array<std::byte, 8> bytes{};
  StoreFromDouble(dtype, value, bytes.data());
  const double rounded = LoadAsDouble(dtype, bytes.data());
  if (rounded > domain.high) return rounded - UlpAt(dtype, rounded);
  if (rounded < domain.low) return rounded + UlpAt(dtype, rounded);
  return value;
}

/// How the values of a large tensor may repeat.
enum class Repeats : std::uint8_t {
  kNot,
  kInPattern,  ///< The same after a while.
  kInAnyOrder  ///< And each is drawn by itself: the same ones may come in any order.
};

/// Of a tensor whose every element is drawn.
constexpr std::int64_t kMostDrawnBytes = 1 << 17;
/// Beyond, as many are.
constexpr std::int64_t kFewDrawn = 1 << 13;

/// Elements of `first`, picked by hash, one after the other to `to`.
template <class Word>
void PickAll(const std::byte* first, std::uint64_t stream, std::int64_t count, std::byte* to) {
  for (std::int64_t i = 0; i < count; ++i, to += sizeof(Word)) {
    const std::uint64_t from = Mix64(stream + static_cast<std::uint64_t>(i)) % kFewDrawn;
    std::memcpy(to, first + from * sizeof(Word), sizeof(Word));
  }
}

/// A hundredth of a pattern, drawn, and scattered over it: most of the work of a slice would be to draw
/// a million numbers for each of its tensors.
template <class Value>
Status Scatter(Value value, std::uint64_t stream, Tensor& pattern) {
  const std::size_t size = SizeOf(pattern.dtype);
  ASSAY_TRY(Tensor drawn, Tensor::Create(pattern.dtype, {kFewDrawn}));
  for (std::int64_t i = 0; i < kFewDrawn; ++i) drawn.Set(i, value(i));
  const auto pick = size == 1   ? &PickAll<std::uint8_t>
                    : size == 2 ? &PickAll<std::uint16_t>
                    : size == 4 ? &PickAll<std::uint32_t>
                                : &PickAll<std::uint64_t>;
  pick(drawn.Element(0), stream, pattern.elements, pattern.Element(0));
  return {};
}

/// Every element by itself; or, where values may repeat and the tensor is large, a pattern of them.
template <class Value>
Status FillWith(Value value, Repeats repeats, std::uint64_t stream, Tensor& tensor) {
  const auto size = static_cast<std::int64_t>(SizeOf(tensor.dtype));
  if (repeats == Repeats::kInAnyOrder && tensor.elements > kMostDrawnBytes / size &&
      tensor.elements <= kWholeBytes / size)
    return Scatter(value, stream, tensor);
  if (repeats == Repeats::kNot || tensor.elements <= kWholeBytes / size) {
    for (std::int64_t i = 0; i < tensor.elements; ++i) tensor.Set(i, value(i));
    return {};
  }
  const auto period = static_cast<std::int64_t>(kPatternBytes) / size;
  ASSAY_TRY(Tensor pattern, Tensor::Create(tensor.dtype, {period}));
  if (repeats == Repeats::kInAnyOrder) {
    ASSAY_TRY_VOID(Scatter(value, stream, pattern));
  } else {
    for (std::int64_t i = 0; i < period; ++i) pattern.Set(i, value(i));
  }
  ASSAY_TRY(tensor.memory, Repeat(pattern.memory.bytes(), tensor.memory.size()));
  return {};
}

}  // namespace

InputClass ClassOf(const ops::TensorSpec& spec, DType dtype) {
  if (spec.domain.kind == ops::Domain::Kind::kIndex) return InputClass::kIndex;
  if (spec.domain.kind == ops::Domain::Kind::kChoice) return InputClass::kChoice;
  return IsFloat(dtype) ? InputClass::kFloat : InputClass::kInteger;
}

// Not those that look at positions in a row or in the whole tensor.
bool IsWithoutPlace(std::string_view kind) {
  constexpr std::array kKinds = {
      "constant", "integers",  "uniform", "normal", "biased",    "signed_zeros",    "cancelling",
      "low",      "high",      "large",   "tiny",   "minute",    "mixed_exponents", "denormals",
      "extremes", "all_equal", "last",    "edges",  "landmarks", "warp_duplicates", "zipf",
      "choice",   "patchy",    "aliases", "opposed"};
  return std::ranges::find(kKinds, kind) != kKinds.end();
}

namespace {

// Not what is drawn from an index's range: of a vocabulary, many more are to occur.
Repeats HowItRepeats(std::string_view kind, InputClass input_class) {
  constexpr std::array kDrawn = {"integers", "uniform", "normal", "biased",          "low",
                                 "high",     "large",   "tiny",   "mixed_exponents", "minute"};
  if (!IsWithoutPlace(kind)) return Repeats::kNot;
  const bool drawn = input_class == kFloat && std::ranges::find(kDrawn, kind) != kDrawn.end();
  return drawn ? Repeats::kInAnyOrder : Repeats::kInPattern;
}

}  // namespace

std::span<const ProfileRow> AllProfiles() {
  static const std::vector<ProfileRow> all = [] {
    std::vector<ProfileRow> rows;
    for (const auto& table : {FloatProfiles(), IntegerProfiles()})
      rows.insert(rows.end(), table.begin(), table.end());
    return rows;
  }();
  return all;
}

const ProfileRow* FindProfile(std::string_view kind, InputClass input_class) {
  const auto found = std::ranges::find_if(AllProfiles(), [&](const ProfileRow& row) {
    return row.kind == kind && row.applies == input_class;
  });
  return found == AllProfiles().end() ? nullptr : &*found;
}

Profile DefaultProfile(const ops::TensorSpec& spec, DType dtype) {
  switch (ClassOf(spec, dtype)) {
    case kIndex:
    case kInteger:
      return {.kind = "uniform", .parameters = {}, .literal = {}};
    case kChoice:
      return {.kind = "choice", .parameters = {}, .literal = {}};
    case kFloat:
      break;
  }
  return {.kind = "normal", .parameters = {}, .literal = {}};
}

Status CheckProfile(const Profile& profile, InputClass input_class, const std::string& place) {
  if (profile.kind == "literal") return {};
  const ProfileRow* row = FindProfile(profile.kind, input_class);
  if (row == nullptr) {
    std::vector<std::string> names = {"literal"};
    for (const ProfileRow& other : AllProfiles()) {
      if (other.applies == input_class) names.emplace_back(other.kind);
    }
    const std::string nearest = Nearest(profile.kind, names);
    return Fail(ErrorKind::kMalformedInput,
                "no value profile '" + profile.kind + "' for such an input", place,
                nearest.empty() ? "take " + names.back() : "did you mean '" + nearest + "'?");
  }
  for (const auto& [name, value] : profile.parameters) {
    const bool known = std::ranges::any_of(row->parameters, [&](const ProfileParameter& p) {
      return !p.name.empty() && p.name == name;
    });
    if (!known || !std::isfinite(value)) {
      return Fail(ErrorKind::kMalformedInput,
                  "profile '" + profile.kind + "' has no parameter '" + name + "' of that value",
                  place);
    }
  }
  return {};
}

Status Fill(const ops::TensorSpec& spec, const Profile& profile, std::uint64_t stream,
            std::int64_t bound, Tensor& tensor) {
  const InputClass input_class = ClassOf(spec, tensor.dtype);
  ASSAY_TRY_VOID(CheckProfile(profile, input_class, "case: profile of " + spec.name));
  if (tensor.elements == 0) return {};
  if (input_class == kIndex && bound <= 0) {
    return Fail(ErrorKind::kMalformedInput,
                "there is no index to choose: axis '" + spec.domain.of + "' is 0",
                "case: profile of " + spec.name);
  }
  if (profile.kind == "literal") {
    if (profile.literal.empty()) return {};
    return FillWith(
        [&](std::int64_t i) {
          double value = profile.literal[static_cast<std::size_t>(i) % profile.literal.size()];
          if (input_class == kIndex) value = std::clamp(value, 0.0, static_cast<double>(bound - 1));
          return Limit(spec.domain, tensor.dtype, value);
        },
        Repeats::kInPattern, stream, tensor);
  }
  const ProfileRow& row = *FindProfile(profile.kind, input_class);
  // Untouched pages of a memfd read as zeros and cost nothing, which huge tensors rely on.
  const bool has_zero = spec.domain.kind != ops::Domain::Kind::kRange ||
                        (spec.domain.low <= 0 && spec.domain.high >= 0);
  const bool sparse = row.kind == "zero" || row.kind == "ends" || row.kind == "front";
  if (sparse && !has_zero && tensor.elements > kMostDense) {
    return Fail(
        ErrorKind::kUnsupported,
        fmt::format("{} elements of a range without 0 are too many to be filled", tensor.elements),
        "case: profile of " + spec.name);
  }
  if (row.kind == "zero" && has_zero) return {};
  FillContext context{
      .stream = stream,
      .dtype = tensor.dtype,
      .domain = &spec.domain,
      .elements = tensor.elements,
      .row = tensor.shape.empty() ? 1 : std::max<std::int64_t>(1, tensor.shape.back()),
      .rows = tensor.shape.size() < 2 ? 1 : std::max<std::int64_t>(1, tensor.shape.end()[-2]),
      .bound = bound,
      .parameter = {},
      .noise = {}};
  std::vector<double> noise;
  if (tensor.elements > kMostDrawnBytes / static_cast<std::int64_t>(SizeOf(tensor.dtype))) {
    for (std::int64_t i = 0; i < kFewDrawn; ++i) noise.push_back(At(context, i).Normal());
    context.noise = noise;
  }
  for (std::size_t i = 0; i < row.parameters.size(); ++i) {
    const auto given = profile.parameters.find(row.parameters[i].name);
    context.parameter[i] =
        given == profile.parameters.end() ? row.parameters[i].fallback : given->second;
  }
  // Untouched between the ends.
  if (row.kind == "ends" && has_zero) {
    for (std::int64_t i = 0; i < tensor.elements; ++i) {
      if (!InEnds(tensor.elements, i)) i = tensor.elements - kLastElements;
      tensor.Set(i, Limit(spec.domain, tensor.dtype, row.value(context, i)));
    }
    return {};
  }
  if (row.kind == "front" && has_zero) {
    for (std::int64_t i = 0; i < std::min(tensor.elements, kFrontElements); ++i)
      tensor.Set(i, Limit(spec.domain, tensor.dtype, row.value(context, i)));
    return {};
  }
  return FillWith(
      [&](std::int64_t i) { return Limit(spec.domain, tensor.dtype, row.value(context, i)); },
      HowItRepeats(row.kind, input_class), stream, tensor);
}

}  // namespace assay::cases
