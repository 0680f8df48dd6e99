// Cases of shapes at which a float of the program becomes another integer than it should (misrounded.h).
#include <algorithm>
#include <bit>
#include <functional>
#include <iterator>
#include <set>
#include <utility>

#include "base/rng.h"
#include "validator/campaign/campaign.h"
#include "validator/campaign/decisions.h"
#include "validator/cases/recipes.h"
#include "validator/cases/shapes.h"

namespace assay::campaign {

const std::vector<MisroundedShape>& Campaign::Misrounded() {
  if (!misrounded_) {
    const Decisions decisions(trial_.instance, trial_.plan, trial_.compiled);
    misrounded_ = ShapesMisrounded(trial_.instance, trial_.plan, decisions,
                                   DeriveSeed(trial_.seed, "misrounded"));
  }
  return *misrounded_;
}

// The smallest ones whole; of larger ones the smallest two sizes, for blocks that hand on take long, and those at which most
// goes wrong, so that whichever blocks run show it: rows that differ, for a block that takes another row's part finds the
// same values where all rows are alike.
std::vector<Task> Campaign::OfMisrounded(std::uint64_t seed) {
  constexpr std::size_t kMostWhole = 3, kSmallest = 2, kMostSlices = 5, kSure = 3;
  std::vector<Task> planned;
  std::vector<MisroundedShape> larger;
  for (const MisroundedShape& shape : Misrounded()) {
    if (!FitsWhole(shape.axes)) {
      larger.push_back(shape);
    } else if (planned.size() < kMostWhole) {
      planned.push_back(TaskFor(cases::MakeCase(trial_.instance, *cases::FindRecipe("plain"),
                                                shape.axes, seed + planned.size(), "reached"),
                                "reached"));
    }
  }
  const auto size_of = [&](const MisroundedShape& shape) {
    return static_cast<std::size_t>(std::bit_width(
        static_cast<std::uint64_t>(cases::TotalElements(trial_.instance, shape.axes))));
  };
  std::vector<MisroundedShape> ordered;
  for (const MisroundedShape& shape : larger) {
    if (ordered.size() < kSmallest &&
        (ordered.empty() || size_of(ordered.back()) != size_of(shape)))
      ordered.push_back(shape);
  }
  std::ranges::stable_sort(larger, std::greater(), &MisroundedShape::share);
  std::ranges::move(larger, std::back_inserter(ordered));
  std::set<std::size_t> sizes;
  for (const MisroundedShape& shape : ordered) {
    if (sizes.size() >= kMostSlices || !sizes.insert(size_of(shape)).second) continue;
    Task task = SliceOf(shape.axes, "reached", seed + 100 + planned.size());
    if (auto unlike = OfUnlikePages(task)) task = *std::move(unlike);
    task.sure = sizes.size() <= kSure;
    planned.push_back(std::move(task));
  }
  return planned;
}

}  // namespace assay::campaign
