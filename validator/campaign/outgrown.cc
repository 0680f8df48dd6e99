#include "validator/campaign/outgrown.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <ranges>
#include <set>
#include <span>

#include "validator/campaign/blocks.h"
#include "validator/cases/case.h"
#include "validator/cases/shapes.h"

namespace assay::campaign {
namespace {

// Numbers of runs of so many elements are believed: none of an index has wrapped there.
constexpr std::int64_t kMostBelieved = std::int64_t{1} << 30;
// What grows alike is the same share of the product everywhere, but for the ends of tiles.
constexpr double kMostSpread = 2.25;
// At so many shapes, of which each axis has lengths that far apart, and as many that are no neighbours: of two lengths any
// power goes through both.
constexpr std::size_t kLeastShapes = 5;
constexpr double kLeastSpan = 4;
constexpr int kLeastApart = 3;
constexpr double kApart = 1.25;
// Axes this long at least: of shorter ones a tile is more than there is. The first of these at which enough ran,
constexpr std::array<std::int64_t, 3> kLeastLengths = {64, 24, 8};
// or one axis longer than the others: a thread of a tile has one row of four, and the last tile may have none for it.
constexpr std::int64_t kLeastOfOne = 256;
// Shapes that show how numbers grow: lengths, and of such an axis beside short ones.
constexpr std::size_t kLengths = 7;
constexpr std::array<int, kLengths> kShort = {8, 10, 13, 17, 22, 28, 35};
constexpr std::array<int, kLengths> kMiddling = {64, 80, 104, 136, 176, 224, 270};
constexpr std::array<int, kLengths> kLong = {256, 320, 410, 520, 660, 840, 1060};
constexpr std::int64_t kLongAxis = 1 << 16;
constexpr std::size_t kMostAxes = 6;
// Past what it is kept to.
constexpr double kFarPast = 1.125;
// And so near to it that it may have come there.
constexpr double kNear = 15.0 / 16;

double ProductOf(const ops::AxisValues& axes, std::uint32_t along,
                 const std::vector<const ops::Axis*>& all) {
  double product = 1;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if ((along >> i & 1) != 0) product *= static_cast<double>(axes.at(all[i]->name));
  }
  return product;
}

/// How many of these are longer than the one before by kApart.
int ApartIn(const std::set<std::int64_t>& lengths) {
  int apart = 0;
  double before = 0;
  for (const std::int64_t length : lengths) {
    if (static_cast<double>(length) < kApart * before) continue;
    before = static_cast<double>(length);
    ++apart;
  }
  return apart;
}

/// How much it grows by, between the largest product and the next that is smaller by a third: a number that has something
/// on top grows by less than its share.
double SlopeOf(const std::map<double, std::uint64_t>& by_product) {
  const auto last = std::prev(by_product.end());
  const auto smaller = by_product.upper_bound(last->first / 1.5);
  if (smaller == by_product.begin()) return 0;
  const auto before = std::prev(smaller);
  return (static_cast<double>(last->second) - static_cast<double>(before->second)) /
         (last->first - before->first);
}

}  // namespace

void Outgrowing::Add(const ops::AxisValues& axes, const std::vector<NarrowNumber>& numbers) {
  if (numbers.empty()) return;
  const auto [at, fresh] = known_.try_emplace(axes, shapes_.size());
  if (fresh) shapes_.push_back({axes, cases::TotalElements(instance_, axes)});
  for (const NarrowNumber& number : numbers) {
    Number& known = numbers_[{number.ptx_line, number.which}];
    known.line = number.line;
    known.digits = number.digits;
    known.points.push_back({at->second, number.most});
  }
}

std::vector<const ops::Axis*> Outgrowing::Axes() const {
  std::vector<const ops::Axis*> axes;
  for (const ops::Axis& axis : instance_.op.axes) {
    if (axis.kind == ops::Axis::Kind::kVariable && axes.size() < kMostAxes) axes.push_back(&axis);
  }
  return axes;
}

bool Outgrowing::GrowsAs(const Number& number, Subset along,
                         const std::vector<const ops::Axis*>& axes,
                         std::span<const std::int64_t> least, Growth& growth) const {
  double low = INFINITY, high = 0;
  std::map<double, std::uint64_t> by_product;  // The most at each.
  std::vector<std::set<std::int64_t>> lengths(axes.size());
  std::set<std::size_t> different;
  for (const Point& point : number.points) {
    const ops::AxisValues& shape = shapes_[point.shape].axes;
    bool counts = shapes_[point.shape].elements <= kMostBelieved;
    for (std::size_t i = 0; i < axes.size() && counts; ++i)
      counts = (along >> i & 1) == 0 || shape.at(axes[i]->name) >= least[i];
    if (!counts) continue;
    const double product = ProductOf(shape, along, axes);
    by_product[product] = std::max(by_product[product], point.most);
    const double share = static_cast<double>(point.most + 1) / product;
    low = std::min(low, share);
    high = std::max(high, share);
    if (high > kMostSpread * low) return false;
    different.insert(point.shape);
    for (std::size_t i = 0; i < axes.size(); ++i) lengths[i].insert(shape.at(axes[i]->name));
  }
  if (different.size() < kLeastShapes) return false;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if ((along >> i & 1) == 0) continue;
    const double span =
        static_cast<double>(*lengths[i].rbegin()) / static_cast<double>(*lengths[i].begin());
    if (span < kLeastSpan || ApartIn(lengths[i]) < kLeastApart) return false;
  }
  growth = {along, std::min(low, SlopeOf(by_product)), high / low, low};
  return growth.share > 0;
}

ops::AxisValues Outgrowing::SmallestWith(const Number& number, Subset along, double product,
                                         const std::vector<const ops::Axis*>& axes) const {
  // The other axes are as at some shape of the same kernels, the smallest ones first.
  constexpr std::size_t kMostBeside = 4;
  std::set<std::vector<bool>> paths;
  std::map<std::int64_t, const ops::AxisValues*> by_size;
  std::set<std::size_t> known;
  for (const Point& point : number.points) {
    if (!known.insert(point.shape).second) continue;
    const Shape& shape = shapes_[point.shape];
    paths.insert(PathAt(instance_.op, plan_, shape.axes));
    by_size.emplace(shape.elements, &shape.axes);
  }
  std::vector<const ops::Axis*> free;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if ((along >> i & 1) != 0) free.push_back(axes[i]);
  }
  std::optional<ops::AxisValues> best;
  std::int64_t least = INT64_MAX;
  // Each but the last at powers of two and as long as it may be, and the last as long as that takes.
  const auto choose = [&](const auto& self, std::size_t next, const ops::AxisValues& beside,
                          ops::AxisValues pinned, double left) -> void {
    const ops::Axis& axis = *free[next];
    if (next + 1 == free.size()) {
      const double length = std::ceil(left);
      if (length > static_cast<double>(axis.max)) return;
      pinned[axis.name] = std::max(axis.min, static_cast<std::int64_t>(length));
      const auto solved = cases::SolveAxes(instance_.op, pinned, beside);
      if (!solved || !paths.contains(PathAt(instance_.op, plan_, *solved)) || !IsLaunched(*solved))
        return;
      const std::int64_t elements = cases::TotalElements(instance_, *solved);
      if (elements >= least) return;
      least = elements;
      best = *solved;
      return;
    }
    for (std::int64_t length = std::max<std::int64_t>(axis.min, 1);;
         length = std::min(2 * length, axis.max)) {
      pinned[axis.name] = length;
      self(self, next + 1, beside, pinned, left / static_cast<double>(length));
      if (length >= axis.max) break;
    }
  };
  for (const auto& [elements, shape] : by_size | std::views::take(kMostBeside))
    choose(choose, 0, *shape, {}, product);
  return best.value_or(ops::AxisValues());
}

// More blocks than any device takes fail in the open.
bool Outgrowing::IsLaunched(const ops::AxisValues& axes) const {
  const auto complete = ops::ResolveAxes(instance_.op, axes);
  return complete && ops::Resolve(plan_, instance_, *complete);
}

std::optional<Outgrowing::Growth> Outgrowing::GrowthOf(
    const Number& number, const std::vector<const ops::Axis*>& axes) const {
  std::optional<Growth> best;
  const auto look = [&](Subset along, std::span<const std::int64_t> least) {
    Growth growth;
    if (GrowsAs(number, along, axes, least, growth) && (!best || growth.spread < best->spread))
      best = growth;
  };
  const Subset end = Subset{1} << axes.size();
  for (const std::int64_t length : kLeastLengths) {
    const std::vector<std::int64_t> least(axes.size(), length);
    for (Subset along = 1; along < end; ++along) look(along, least);
    if (best) return best;
  }
  for (std::size_t i = 0; i < axes.size(); ++i) {
    std::vector<std::int64_t> least(axes.size(), kLeastLengths.back());
    least[i] = kLeastOfOne;
    for (Subset along = 1; along < end; ++along) {
      if ((along >> i & 1) != 0) look(along, least);
    }
  }
  return best;
}

std::vector<Outgrowing::Outgrown> Outgrowing::Find() const {
  std::vector<Outgrown> all;
  const std::vector<const ops::Axis*> axes = Axes();
  for (const auto& [key, number] : numbers_) {
    const std::optional<Growth> best = GrowthOf(number, axes);
    if (!best) continue;
    const double wanted = kFarPast * std::exp2(number.digits) / best->share;
    ops::AxisValues shape = SmallestWith(number, best->along, wanted, axes);
    const bool surely = !shape.empty();
    if (!surely) {
      double longest = 1;
      for (std::size_t i = 0; i < axes.size(); ++i) {
        if ((best->along >> i & 1) != 0) longest *= static_cast<double>(axes[i]->max);
      }
      if (longest * best->low < kNear * std::exp2(number.digits) || longest >= wanted) continue;
      shape = SmallestWith(number, best->along, longest, axes);
    }
    if (shape.empty()) continue;
    Outgrown outgrown{.ptx_line = key.first,
                      .which = key.second,
                      .line = number.line,
                      .digits = number.digits,
                      .along = {},
                      .share = best->share,
                      .surely = surely,
                      .axes = std::move(shape)};
    for (std::size_t i = 0; i < axes.size(); ++i) {
      if ((best->along >> i & 1) != 0) outgrown.along.push_back(axes[i]->name);
    }
    all.push_back(std::move(outgrown));
  }
  return all;
}

std::vector<ops::AxisValues> Outgrowing::Wanting() const {
  constexpr std::size_t kMostPaths = 3;
  constexpr std::uint64_t kLeast = 16, kTimes = 4;
  const std::vector<const ops::Axis*> axes = Axes();
  std::map<std::vector<bool>, const Shape*> paths;  // And the smallest shape of each.
  for (const auto& [key, number] : numbers_) {
    const auto [low, high] =
        std::ranges::minmax(number.points | std::views::transform(&Point::most));
    if (high < kLeast || high / kTimes < low || GrowthOf(number, axes)) continue;
    for (const Point& point : number.points) {
      if (point.most < kTimes * low) continue;
      const Shape& shape = shapes_[point.shape];
      const Shape*& smallest =
          paths.try_emplace(PathAt(instance_.op, plan_, shape.axes)).first->second;
      if (smallest == nullptr || shape.elements < smallest->elements) smallest = &shape;
    }
  }
  std::vector<ops::AxisValues> wanting;
  const auto add = [&](const std::vector<bool>& path, const ops::AxisValues& wanted) {
    const auto solved = cases::SolveAxes(instance_.op, {}, wanted);
    if (solved && PathAt(instance_.op, plan_, *solved) == path && IsLaunched(*solved) &&
        !known_.contains(*solved) && std::ranges::find(wanting, *solved) == wanting.end())
      wanting.push_back(*solved);
  };
  for (const auto& of_path : paths | std::views::take(kMostPaths)) {
    const std::vector<bool>& path = of_path.first;
    const Shape& smallest = *of_path.second;
    const auto scaled = [&](std::size_t i, const auto& lengths, std::size_t at) {
      const std::int64_t least = smallest.axes.at(axes[i]->name), length = lengths[at % kLengths];
      return std::min(axes[i]->max, least > lengths[0] ? least * length / lengths[0] : length);
    };
    // Each axis has all lengths, for their number is a prime, beside another one of another axis each time.
    const auto add_all = [&](const auto& lengths) {
      for (std::size_t row = 0; row < kLengths; ++row) {
        ops::AxisValues wanted;
        for (std::size_t i = 0; i < axes.size(); ++i)
          wanted[axes[i]->name] = scaled(i, lengths, row * (i + 1) + i);
        add(path, wanted);
      }
    };
    // Where one is long the others are short.
    const auto add_long = [&](std::size_t longer) {
      for (std::size_t row = 0; row < kLengths; ++row) {
        ops::AxisValues wanted;
        for (std::size_t i = 0; i < axes.size(); ++i)
          wanted[axes[i]->name] =
              i == longer ? scaled(i, kLong, row) : scaled(i, kShort, kLengths - 1 - row + i);
        add(path, wanted);
      }
    };
    add_all(kShort);
    add_all(kMiddling);
    for (std::size_t i = 0; i < axes.size(); ++i) {
      if (axes[i]->max >= kLongAxis) add_long(i);
    }
  }
  return wanting;
}

bool Outgrowing::IsSeen(const Outgrown& outgrown) const {
  const Number& number = numbers_.at({outgrown.ptx_line, outgrown.which});
  const auto product_at = [&](const ops::AxisValues& shape) {
    double product = 1;
    for (const std::string& axis : outgrown.along) product *= static_cast<double>(shape.at(axis));
    return product;
  };
  const double enough = product_at(outgrown.axes);
  return std::ranges::any_of(number.points, [&](const Point& point) {
    return product_at(shapes_[point.shape].axes) >= enough;
  });
}

std::string Outgrowing::Unseen() const {
  for (const Outgrown& outgrown : Find()) {
    if (IsSeen(outgrown) || !outgrown.surely) continue;
    std::vector<std::string> lengths;
    for (const ops::Axis* const axis : Axes())
      lengths.push_back(fmt::format("{}={}", axis->name, outgrown.axes.at(axis->name)));
    return fmt::format(
        "{} grows as {} and is kept in {} bits, and no case at which it outgrows these could be "
        "judged [{}]",
        outgrown.line == 0 ? fmt::format("an index at line {} of the PTX", outgrown.ptx_line)
                           : fmt::format("an index at line {}", outgrown.line),
        fmt::join(outgrown.along, " * "), outgrown.digits, fmt::join(lengths, " "));
  }
  return {};
}

}  // namespace assay::campaign
