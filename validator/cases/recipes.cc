#include "validator/cases/recipes.h"

#include <algorithm>
#include <array>

#include "base/rng.h"
#include "validator/cases/profiles.h"

namespace assay::cases {
namespace {

// The first two find most mistakes; the order is the order of trying.
constexpr std::array kRecipes = {
    Recipe{"exact", "integers", "uniform", "uniform", false,
           "small integers: indexing mistakes, with no tolerance"},
    Recipe{"plain", "normal", "uniform", "uniform", false, "what everybody tests"},
    Recipe{"hot", "biased", "zipf", "uniform", false,
           "few hot indices and a common sign: long one-sided sums", false, false, "", "graded"},
    Recipe{"equal", "normal", "all_equal", "constant", false, "every index the same"},
    Recipe{"lanes", "integers", "warp_duplicates", "uniform", false,
           "duplicates among the lanes of a warp"},
    Recipe{"edges", "outliers", "edges", "extremes", false,
           "first and last index, outlier channels"},
    Recipe{"permuted", "cancelling", "permutation", "uniform", false,
           "no duplicates; sums that cancel", false, false, "", "graded"},
    Recipe{"large", "large", "sorted", "extremes", false, "large magnitudes"},
    Recipe{"low", "low", "zipf", "uniform", false, "all values far below zero"},
    Recipe{"high", "high", "uniform", "uniform", false, "all values far above zero"},
    Recipe{"opposed", "high", "uniform", "uniform", false,
           "the first input far above zero, all others far below: products are negative", true,
           false, "low"},
    Recipe{"tiny", "tiny", "reversed", "zero", false,
           "small magnitudes: a missing eps shows, or a wrong one"},
    Recipe{"minute", "minute", "uniform", "uniform", false,
           "magnitudes that thresholds take for zero", true},
    Recipe{"mixed", "mixed_exponents", "zipf", "uniform", false, "magnitudes from 2^-14 to 2^7",
           false, false, "", "graded"},
    Recipe{"biased", "biased", "uniform", "uniform", false, "mean far from zero", false, false, "",
           "graded"},
    Recipe{"sorted", "sorted", "sorted", "uniform", false, "ascending values", false, false, "",
           "graded"},
    Recipe{"one_hot", "one_hot", "permutation", "constant", false, "one element a row"},
    Recipe{"zeros", "signed_zeros", "uniform", "zero", false, "0 and -0 among the values"},
    Recipe{"denormals", "denormals", "uniform", "uniform", false, "denormals of the dtype"},
    Recipe{"constant", "constant", "all_equal", "constant", false, "one value everywhere"},
    Recipe{"all_zero", "zero", "zero", "zero", false, "nothing but zeros"},
    Recipe{"extremes", "extremes", "edges", "extremes", false, "the ends of each range"},
    Recipe{"specials", "specials", "uniform", "uniform", true, "NaN and infinities here and there"},
    Recipe{"infinite_rows", "infinite_rows", "uniform", "uniform", true, "whole rows of -inf"},
    Recipe{"masked", "masked", "uniform", "uniform", true, "parts of rows at -inf"},
    Recipe{"padded", "padded", "sorted_but_one", "uniform", false,
           "whole warps of zeros in front, in the middle or at the end of a row", true, true},
    Recipe{"level", "constant_rows", "sorted_runs", "constant", false, "one value a row", true,
           true},
    Recipe{"ties", "ties", "sorted_but_one", "uniform", false,
           "the largest value twice or three times, warps apart", true, true},
    Recipe{"late", "late_maximum", "last", "uniform", false,
           "the largest value in the row's last place, or behind its last full chunk", true, true},
    Recipe{"far_apart", "far_apart", "uniform", "uniform", false,
           "the largest values of each row a warp or more apart: one lane has them all", true,
           true},
    Recipe{"lone", "lone", "uniform", "uniform", false,
           "one value of each row far from all others: first, last or between", true, true},
    Recipe{"spiked", "spiked", "uniform", "uniform", false,
           "one value in each row that swallows the others", true, true},
};

// The recipe's word for this input, or an empty one where the default serves.
std::string_view KindFor(const Recipe& recipe, const ops::TensorSpec& spec, DType dtype,
                         bool first) {
  if (spec.IsGenerated()) return {};
  if (spec.is_scalar) {
    // They stay plain, but in a range: its ends, where parameters turn something off, and its magnitudes.
    if (spec.domain.kind != ops::Domain::Kind::kRange) return {};
    if (recipe.integers == "extremes") return "extremes";
    return ClassOf(spec, dtype) == InputClass::kFloat ? recipe.scalars : std::string_view();
  }
  std::string_view kind;
  const InputClass input_class = ClassOf(spec, dtype);
  if (input_class == InputClass::kFloat)
    kind = first || recipe.other_floats.empty() ? recipe.floats : recipe.other_floats;
  if (input_class == InputClass::kIndex) kind = recipe.indices;
  if (input_class == InputClass::kInteger) kind = recipe.integers;
  const ProfileRow* row = FindProfile(kind, input_class);
  if (row == nullptr) return {};
  if (row->special && !spec.domain.allow_nan && !spec.domain.allow_infinity) return {};
  return kind;
}

/// Null where there is none.
const ops::TensorSpec* FirstOfFloats(const ops::Instance& instance) {
  const auto first = std::ranges::find_if(instance.op.inputs, [&](const ops::TensorSpec& spec) {
    return IsOf(InputClass::kFloat, instance, spec);
  });
  return first == instance.op.inputs.end() ? nullptr : &*first;
}

void Set(Case& value, const Recipe& recipe, const ops::TensorSpec& spec, DType dtype, bool first) {
  const std::string_view kind = KindFor(recipe, spec, dtype, first);
  if (kind.empty() || kind == DefaultProfile(spec, dtype).kind) return;
  value.profiles[spec.name] = {.kind = std::string(kind), .parameters = {}, .literal = {}};
}

}  // namespace

std::span<const Recipe> AllRecipes() { return kRecipes; }

const Recipe* FindRecipe(std::string_view name) {
  const auto found = std::ranges::find(kRecipes, name, &Recipe::name);
  return found == kRecipes.end() ? nullptr : &*found;
}

const Recipe& OrderRecipe() {
  static constexpr Recipe kOrders{"orders", "absorbing",
                                  "zipf",   "uniform",
                                  false,    "large values that cancel, ordinary ones between them"};
  return kOrders;
}

const Recipe& ExactSumsRecipe() {
  static constexpr Recipe kExactSums{
      "exact sums", "opposed", "uniform",
      "uniform",    false,     "integers that cancel: long sums are small and exact",
      true,         true,      "integers"};
  return kExactSums;
}

bool Applies(const Recipe& recipe, const ops::Instance& instance) {
  return !recipe.special ||
         std::ranges::any_of(instance.op.inputs, [](const ops::TensorSpec& spec) {
           return spec.domain.allow_nan || spec.domain.allow_infinity;
         });
}

Case MakeCase(const ops::Instance& instance, const Recipe& recipe, ops::AxisValues axes,
              std::uint64_t seed, std::string origin) {
  Case value{.axes = std::move(axes), .seed = seed, .profiles = {}, .origin = std::move(origin)};
  const ops::TensorSpec* const first = FirstOfFloats(instance);
  for (const ops::TensorSpec& spec : instance.op.inputs)
    Set(value, recipe, spec, instance.TypeOf(spec), &spec == first);
  return value;
}

Case MakeMixedCase(const ops::Instance& instance, ops::AxisValues axes, std::uint64_t seed,
                   std::string origin) {
  Case value{.axes = std::move(axes), .seed = seed, .profiles = {}, .origin = std::move(origin)};
  Rng rng(DeriveSeed(seed, "recipes"));
  for (const ops::TensorSpec& spec : instance.op.inputs) {
    std::size_t drawn = rng.Below(kRecipes.size());
    while (kRecipes[drawn].alone || kRecipes[drawn].wide) drawn = rng.Below(kRecipes.size());
    Set(value, kRecipes[drawn], spec, instance.TypeOf(spec), true);
  }
  return value;
}

bool IsOf(InputClass input_class, const ops::Instance& instance, const ops::TensorSpec& spec) {
  return !spec.is_scalar && !spec.IsGenerated() &&
         ClassOf(spec, instance.TypeOf(spec)) == input_class;
}

void LookAtTheEnd(const ops::Instance& instance, std::string_view axis, Case& value) {
  for (const ops::TensorSpec& spec : instance.op.inputs) {
    if (IsOf(InputClass::kIndex, instance, spec) && spec.domain.of == axis)
      value.profiles[spec.name] = {.kind = "last", .parameters = {}, .literal = {}};
  }
}

}  // namespace assay::cases
