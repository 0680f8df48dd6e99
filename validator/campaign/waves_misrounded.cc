// Cases of shapes at which a float of the program becomes another integer than it should (misrounded.h).
#include <algorithm>
#include <bit>
#include <functional>
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
    misrounded_ =
        ShapesMisrounded(trial_.instance, decisions, DeriveSeed(trial_.seed, "misrounded"));
  }
  return *misrounded_;
}

// The smallest ones whole; of larger ones those at which most goes wrong, so that whichever blocks run show it: rows that differ,
// for a block that takes another row's part finds the same values where all rows are alike.
std::vector<Task> Campaign::OfMisrounded(std::uint64_t seed) {
  constexpr std::size_t kMostWhole = 3, kMostSlices = 3, kSure = 2;
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
  std::ranges::stable_sort(larger, std::greater(), &MisroundedShape::share);
  std::set<std::size_t> sizes;
  for (const MisroundedShape& shape : larger) {
    const auto elements =
        static_cast<std::uint64_t>(cases::TotalElements(trial_.instance, shape.axes));
    if (sizes.size() >= kMostSlices ||
        !sizes.insert(static_cast<std::size_t>(std::bit_width(elements))).second)
      continue;
    Task task = SliceOf(shape.axes, "reached", seed + 100 + planned.size());
    if (auto unlike = OfUnlikePages(task)) task = *std::move(unlike);
    task.sure = sizes.size() <= kSure;
    planned.push_back(std::move(task));
  }
  return planned;
}

}  // namespace assay::campaign
