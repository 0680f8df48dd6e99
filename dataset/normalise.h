// What makes two kernels the same to a corpus, at three distances.
//
//   normalised   comments and layout gone, every name that the source declares renamed in order of
//                appearance ($0, $1, ...); numbers, strings and names from outside (threadIdx, expf,
//                atomicAdd) kept. Equal: the same kernel, written otherwise.
//   skeleton     the control flow alone: branches, loops, returns, short circuits, blocks, and the
//                calls that synchronise or communicate. Equal: near-duplicates.
//   sketch       a MinHash (Broder 1997) over runs of five tokens without names and numbers; the
//                share of equal entries estimates how much of two kernels is the same text. Catches
//                the near-duplicate that has one branch more.
//
// Which names a source declares is read off its tokens, not off a parse: a name behind a type, a
// #define, a label. When in doubt a name counts as one from outside and is kept: then a duplicate is
// missed, but no two kernels that compute different things are taken for one. Members after `.` and
// `->` are renamed only where a struct of the source declares them.
//
// Languages other than "cuda" (triton, ptx) are compared line by line without blanks at line ends;
// their skeleton is their normalised text. Pure functions, linear, thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace assay::dataset {

inline constexpr std::size_t kSketchSize = 64;
using Sketch = std::array<std::uint32_t, kSketchSize>;

struct Normalised {
  std::string text;                            ///< The normalised source.
  std::string digest;                          ///< SHA-256 of it.
  std::string skeleton;                        ///< SHA-256 of the skeleton.
  Sketch sketch{};                             ///< All zero for sources of fewer than five tokens.
  std::map<std::string, std::string> renamed;  ///< Declared name -> "$3".
  std::vector<std::uint32_t> lines;            ///< Line of each token.

  /// Where a line of the source stands in the normalised one: how many tokens come before it. The
  /// same for two sources that differ in layout alone.
  std::size_t PlaceOf(std::uint32_t line) const;
};

Normalised Normalise(std::string_view source, std::string_view language);

/// The launch plan with the kernels' names replaced as in `kernel`, layout gone; the text itself
/// where it is no JSON.
std::string NormaliseLaunch(std::string_view launch, const Normalised& kernel);

/// Estimated share of common text, 0 to 1.
double Likeness(const Sketch& a, const Sketch& b);
/// From this likeness on two kernels are near-duplicates.
inline constexpr double kAlike = 0.8;

}  // namespace assay::dataset
