// Value profiles: the ways in which an input's elements are drawn. A table; add a row to add a
// profile.
//
// Every profile is a pure function of (stream seed, element index): tensors can be filled in any
// order, and element i does not depend on how many elements there are unless the profile is about
// that (sorted, permutation), or they are so many that fewer are drawn. Values are doubles; Fill limits them to the input's domain and rounds
// them to its dtype.
//
// Magnitudes of `large` and `tiny` are chosen such that cubes of them, summed a million times, stay
// inside f32: what an honest kernel with an f32 accumulator survives.
//
// Cost: 10 to 50 ns an element. Thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/tensor.h"
#include "ops/op.h"
#include "validator/cases/case.h"

namespace assay::cases {

/// What sort of input a profile can fill.
enum class InputClass : std::uint8_t { kFloat, kInteger, kIndex, kChoice };
InputClass ClassOf(const ops::TensorSpec& spec, DType dtype);

/// A parameter of a profile with its default.
struct ProfileParameter {
  std::string_view name;
  double fallback;
};

/// All that a profile's value function sees.
struct FillContext {
  std::uint64_t stream = 0;  ///< Seed of this input.
  DType dtype = DType::kF32;
  const ops::Domain* domain = nullptr;
  std::int64_t elements = 0;
  std::int64_t row = 1;               ///< Extent of the innermost axis,
  std::int64_t rows = 1;              ///< and of the one around it.
  std::int64_t bound = 0;             ///< Indices lie in [0, bound).
  std::array<double, 2> parameter{};  ///< In the order of the row's parameters.
  std::span<const double> noise;      ///< Normal numbers, for large tensors: what is drawn of them.
};

struct ProfileRow {
  std::string_view kind;
  InputClass applies;
  int rank;      ///< Plainer profiles have lower ranks: the order in which shrinking prefers them.
  bool exact;    ///< Small integers: sums and products of them are exact in every float type.
  bool special;  ///< Needs a domain that allows NaN or infinity.
  std::array<ProfileParameter, 2> parameters;
  double (*value)(const FillContext& context, std::int64_t index);
  std::string_view meaning;
};

/// All rows; a kind may occur once a class.
std::span<const ProfileRow> AllProfiles();
/// Null when no such profile exists for the class. "literal" has no row: its values stand in the
/// profile.
const ProfileRow* FindProfile(std::string_view kind, InputClass input_class);
/// "normal" for floats, "uniform" for integers, ranges and indices, "choice" for choices.
Profile DefaultProfile(const ops::TensorSpec& spec, DType dtype);

/// The parts of a huge tensor that profile `ends` fills; zeros between them.
constexpr std::int64_t kFirstElements = 1 << 13;
constexpr std::int64_t kLastElements = 1 << 17;
constexpr bool InEnds(std::int64_t elements, std::int64_t index) {
  return index < kFirstElements || index >= elements - kLastElements;
}

/// The part that profile `front` fills; zeros behind it. Longer than a row or two of most ops: what comes
/// round just past a limit of 32 bits comes back here.
constexpr std::int64_t kFrontElements = 1 << 17;

/// Beyond this, profiles whose values hang on nothing but the element's number repeat after
/// kPatternBytes (base/repeating_memory.h): no page of them costs anything.
constexpr std::int64_t kWholeBytes = 4 << 20;

/// Hang the values of this profile on nothing but seed and number, so that they may repeat?
bool IsWithoutPlace(std::string_view kind);

/// Checks kind and parameter names; `place` is for the error.
Status CheckProfile(const Profile& profile, InputClass input_class, const std::string& place);

/// Fills a zeroed tensor, or gives it memory that repeats. `bound` is the extent of the axis that an index domain names, else 0. A
/// literal that is shorter than the tensor is repeated; an empty one means zeros.
Status Fill(const ops::TensorSpec& spec, const Profile& profile, std::uint64_t stream,
            std::int64_t bound, Tensor& tensor);

}  // namespace assay::cases
