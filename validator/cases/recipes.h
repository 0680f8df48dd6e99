// Recipes: which profile every input of an op gets, so that one case exercises one idea ("hot
// rows", "exact integers").
//
// A table; add a row to add an idea. Inputs whose domain is a choice or is generated keep their own
// profile.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "ops/op.h"
#include "validator/cases/case.h"
#include "validator/cases/profiles.h"

namespace assay::cases {

struct Recipe {
  std::string_view name;
  std::string_view floats;    ///< Profile kind of floating-point inputs.
  std::string_view indices;   ///< Profile kind of index inputs.
  std::string_view integers;  ///< Profile kind of other integer inputs.
  bool special = false;       ///< Applies only where some domain allows NaN or infinity.
  std::string_view meaning;
  /// Not mixed with other recipes: next to large values, whether intermediate products underflow
  /// would hang on the order of their factors, which is nobody's fault.
  bool alone = false;
  /// A pattern along rows of several warps: says nothing on shorter ones, and is not mixed either.
  bool wide = false;
  /// Of all floating-point inputs but the first; empty: as that.
  std::string_view other_floats = {};
  /// Of floating-point scalars with a range; empty: as ever, or the ends of the range where those are what other
  /// integers take.
  std::string_view scalars = {};
};

std::span<const Recipe> AllRecipes();
const Recipe* FindRecipe(std::string_view name);
/// For comparing orders: sums of other groups differ by more than a narrow output rounds away. Not
/// among the others.
const Recipe& OrderRecipe();
/// For long sums in a narrow accumulator: what it rounds is more than the result. Not among the others either.
const Recipe& ExactSumsRecipe();
/// False when the recipe has nothing to say about this op: no NaN or infinity allowed anywhere.
bool Applies(const Recipe& recipe, const ops::Instance& instance);

/// The case of `recipe` at a shape.
Case MakeCase(const ops::Instance& instance, const Recipe& recipe, ops::AxisValues axes,
              std::uint64_t seed, std::string origin);

/// Every input draws its profile from a recipe of its own, chosen by `seed` among those that mix.
Case MakeMixedCase(const ops::Instance& instance, ops::AxisValues axes, std::uint64_t seed,
                   std::string origin);

/// Is it an input of that class, which is filled with values of some profile: no scalar, nor made by the op's own rule?
bool IsOf(InputClass input_class, const ops::Instance& instance, const ops::TensorSpec& spec);

/// What looks a place up along the axis looks at the last one.
void LookAtTheEnd(const ops::Instance& instance, std::string_view axis, Case& value);

}  // namespace assay::cases
