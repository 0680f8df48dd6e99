#include "validator/cases/shrink.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "validator/cases/profiles.h"
#include "validator/cases/shapes.h"

namespace assay::cases {
namespace {

// Fixed, so that results do not depend on the machine.
constexpr std::size_t kBatch = 2;
// What fails on axes longer than this fails from some length on, as a rule: where neither half of it nor one
// less fails, no other length is looked for, since each may take seconds.
constexpr std::int64_t kLongAxis = 4096;
// Longest axis of which slices of spelled-out values are taken.
constexpr std::int64_t kMaxSliced = 4096;
constexpr int kSlicesOfASize = 12;

class Shrinker {
 public:
  Shrinker(const ops::Instance& instance, Probe start, const StillFails& still_fails,
           const ShrinkLimits& limits)
      : instance_(instance), best_(std::move(start)), still_fails_(still_fails), limits_(limits) {}

  Shrunk Run() {
    bool progress = true;
    while (progress && !Spent()) {
      progress = ShrinkBlocks();
      progress = ShrinkShape() || progress;
      progress = ShrinkPrelude() || progress;
      progress = SimplifyValues() || progress;
      progress = SliceWhole() || progress;
      progress = ShrinkLiterals() || progress;
      progress = DropSlices(limits_.max_literal) || progress;
      progress = ShrinkSurroundings() || progress;
    }
    if (trials_ > 0) best_.case_.origin = "shrunk";
    return {std::move(best_), trials_, !progress && !Spent()};
  }

 private:
  bool Spent() const { return trials_ >= limits_.max_trials; }

  // Tries the probes in order, a batch at a time; takes the first that fails. Returns its index. Those that
  // are known to pass are not tried again, nor is one that stands twice.
  std::optional<std::size_t> TakeFirst(std::vector<Probe> probes) {
    std::vector<std::size_t> index(probes.size());
    std::iota(index.begin(), index.end(), 0);
    std::erase_if(index, [&](std::size_t i) {
      const auto before = std::span(probes).first(i);
      return std::ranges::find(passing_, probes[i]) != passing_.end() ||
             std::ranges::find(before, probes[i]) != before.end();
    });
    for (std::size_t start = 0; start < index.size() && !Spent(); start += kBatch) {
      const std::size_t count = std::min(
          {kBatch, index.size() - start, static_cast<std::size_t>(limits_.max_trials - trials_)});
      std::vector<Probe> batch;
      for (std::size_t i = 0; i < count; ++i) batch.push_back(std::move(probes[index[start + i]]));
      trials_ += static_cast<int>(count);
      const std::vector<bool> fails = still_fails_(batch);
      for (std::size_t i = 0; i < count; ++i) {
        if (fails[i]) {
          best_ = std::move(batch[i]);
          return index[start + i];
        }
        if (LiteralsOf(batch[i]) <= kMaxSliced) passing_.push_back(std::move(batch[i]));
      }
    }
    return std::nullopt;
  }

  static std::int64_t LiteralsOf(const Probe& probe) {
    std::size_t elements = 0;
    const auto add = [&](const Case& value) {
      for (const auto& [name, profile] : value.profiles) elements += profile.literal.size();
    };
    add(probe.case_);
    std::ranges::for_each(probe.prelude, add);
    return static_cast<std::int64_t>(elements);
  }

  // Of a slice as few blocks as show it: all other trials take less then.
  bool ShrinkBlocks() {
    std::vector<Probe> fewer;
    for (const std::uint64_t blocks : {1, 3}) {
      if (!best_.ends_only || blocks >= best_.slice_blocks) break;
      fewer.push_back(best_);
      fewer.back().slice_blocks = blocks;
    }
    return TakeFirst(std::move(fewer)).has_value();
  }

  Probe WithAxes(const ops::AxisValues& axes) const {
    Probe probe = best_;
    probe.case_.axes = axes;
    for (Case& before : probe.prelude) {
      if (before.axes == best_.case_.axes) before.axes = axes;
    }
    return probe;
  }

  // The current shape with `axis` at `value`, other axes moved only as far as constraints ask;
  // nothing if that is no simpler.
  std::optional<Probe> WithAxis(const std::string& axis, std::int64_t value) const {
    ops::AxisValues moved = best_.case_.axes;
    moved[axis] = value;
    if (!ops::ResolveAxes(instance_.op, moved)) {
      const auto solved = SolveAxes(instance_.op, {{axis, value}}, best_.case_.axes);
      if (!solved) return std::nullopt;
      moved = *solved;
    }
    Probe probe = WithAxes(moved);
    if (!ShortlexLess(instance_, probe.case_, best_.case_)) return std::nullopt;
    return probe;
  }

  bool ShrinkShape() {
    bool progress = false;
    // All at once: most bugs show on something tiny.
    std::vector<Probe> tiny;
    for (const std::int64_t size : {1, 2, 3, 5, 8, 33}) {
      ops::AxisValues wanted;
      for (const auto& [name, value] : best_.case_.axes) wanted[name] = std::min(value, size);
      const auto solved = SolveAxes(instance_.op, {}, wanted);
      if (!solved || *solved == best_.case_.axes) continue;
      Probe probe = WithAxes(*solved);
      if (ShortlexLess(instance_, probe.case_, best_.case_)) tiny.push_back(std::move(probe));
    }
    progress = TakeFirst(std::move(tiny)).has_value();
    // Largest axis first: it costs most.
    std::vector<std::string> names;
    for (const auto& [name, value] : best_.case_.axes) names.push_back(name);
    std::ranges::stable_sort(names, std::greater<>(), [&](const std::string& name) {
      return best_.case_.axes.find(name)->second;
    });
    for (const std::string& name : names) progress = ShrinkAxis(name) || progress;
    return progress;
  }

  // Smallest value first, then sections of the interval between what is known not to fail and what
  // fails; of a long axis its half, and whether it is at a limit.
  bool ShrinkAxis(const std::string& name) {
    const ops::Axis* axis = instance_.op.FindAxis(name);
    if (axis == nullptr) return false;
    bool progress = false;
    const auto current = [&] { return best_.case_.axes.find(name)->second; };
    std::int64_t passes_at = axis->min - 1;
    while (!Spent() && current() - passes_at > 1) {
      const std::int64_t width = current() - passes_at;
      std::vector<std::int64_t> values;
      if (passes_at < axis->min) {
        values = {axis->min, std::min(axis->min + 1, current() - 1)};
      } else if (width == 2) {
        values = {passes_at + 1};
      } else if (current() > kLongAxis) {
        values = {passes_at + width / 2, current() - 1};
      } else {
        values = {passes_at + width / 3, passes_at + width * 2 / 3};
      }
      std::vector<Probe> probes;
      std::vector<std::int64_t> tried;
      std::int64_t largest = passes_at;  // That does not fail, or cannot be.
      for (const std::int64_t value : values) {
        if (value <= largest || value >= current()) continue;
        largest = value;
        if (auto probe = WithAxis(name, value)) {
          probes.push_back(std::move(*probe));
          tried.push_back(value);
        }
      }
      if (largest == passes_at) break;
      const std::optional<std::size_t> taken = TakeFirst(std::move(probes));
      progress = progress || taken;
      if (!taken)
        passes_at = largest;
      else if (*taken > 0)
        passes_at = tried[*taken - 1];
    }
    return progress;
  }

  // Earlier calls: fewer of them, all first, then by halves; then such as the judged call.
  bool ShrinkPrelude() {
    bool progress = false;
    for (std::size_t chunk = best_.prelude.size(); chunk > 0 && !Spent();) {
      std::vector<Probe> probes;
      for (std::size_t at = 0; at + chunk <= best_.prelude.size(); at += chunk) {
        Probe probe = best_;
        const auto first = probe.prelude.begin() + static_cast<std::ptrdiff_t>(at);
        probe.prelude.erase(first, first + static_cast<std::ptrdiff_t>(chunk));
        if (probe.prelude.empty()) probe.reuse_addresses = false;
        // Of a row of equal calls it does not matter which one goes.
        if (probes.empty() || !(probes.back() == probe)) probes.push_back(std::move(probe));
      }
      if (TakeFirst(probes)) {
        progress = true;
        chunk = std::min(chunk, best_.prelude.size());
      } else {
        chunk /= 2;
      }
    }
    std::vector<Probe> alike(1, best_);
    std::ranges::fill(alike.front().prelude, best_.case_);
    constexpr std::size_t kOneByOne = 4;
    for (std::size_t i = 0; i < best_.prelude.size() && best_.prelude.size() <= kOneByOne; ++i) {
      alike.push_back(best_);
      alike.back().prelude[i] = best_.case_;
    }
    std::erase_if(alike, [&](const Probe& probe) { return probe == best_; });
    return TakeFirst(alike).has_value() || progress;
  }

  bool SimplifyValues() {
    bool progress = false;
    for (const ops::TensorSpec& spec : instance_.op.inputs) {
      progress = SimplifyProfile(spec) || progress;
    }
    if (best_.case_.seed > 1) {
      std::vector<Probe> probes(2, best_);
      probes[0].case_.seed = 0;
      probes[1].case_.seed = 1;
      progress = TakeFirst(probes).has_value() || progress;
    }
    return progress;
  }

  // Profiles draw other values for another shape, so that a failure which hangs on one element is
  // lost on the way down. Spelled out, the values stay while the rows and columns around them go.
  // Kept only where it ends smaller than it began.
  bool SliceWhole() {
    if (Spent()) return false;
    const auto spelled = cases::SpellOut(instance_, best_.case_);
    if (!spelled || spelled->profiles == best_.case_.profiles) return false;
    Probe before = best_;
    Probe whole = best_;
    whole.case_ = *spelled;
    for (Case& call : whole.prelude) {
      if (call == before.case_) call = *spelled;
    }
    if (!TakeFirst({std::move(whole)})) return false;
    DropSlices(kMaxSliced);
    if (TotalElements(instance_, best_.case_.axes) < TotalElements(instance_, before.case_.axes))
      return true;
    best_ = std::move(before);
    return false;
  }

  bool ShrinkLiterals() {
    bool progress = false;
    for (const ops::TensorSpec& spec : instance_.op.inputs) {
      progress = SpellOut(spec) || progress;
    }
    return progress;
  }

  const Profile& ProfileOf(const ops::TensorSpec& spec, const Profile& fallback) const {
    const auto found = best_.case_.profiles.find(spec.name);
    return found == best_.case_.profiles.end() ? fallback : found->second;
  }

  bool SimplifyProfile(const ops::TensorSpec& spec) {
    if (spec.IsGenerated()) return false;
    const DType dtype = instance_.TypeOf(spec);
    const Profile fallback = DefaultProfile(spec, dtype);
    const Profile& current = ProfileOf(spec, fallback);
    if (current.kind == "literal") return false;
    const InputClass input_class = ClassOf(spec, dtype);
    const ProfileRow* now = FindProfile(current.kind, input_class);
    std::vector<Probe> probes;
    for (const ProfileRow& row : AllProfiles()) {
      if (row.applies != input_class || row.special || now == nullptr || row.rank >= now->rank)
        continue;
      Probe probe = best_;
      probe.case_.profiles[spec.name] = {
          .kind = std::string(row.kind), .parameters = {}, .literal = {}};
      probes.push_back(std::move(probe));
    }
    // A correct value of a parameter matters less than having none.
    if (!current.parameters.empty()) {
      Probe probe = best_;
      probe.case_.profiles[spec.name].parameters.clear();
      probes.push_back(std::move(probe));
    }
    return TakeFirst(std::move(probes)).has_value();
  }

  // Small inputs become literals, whose elements are then made plain: zeros first, by halves, then
  // ones.
  bool SpellOut(const ops::TensorSpec& spec) {
    if (spec.is_scalar || spec.IsGenerated()) return false;
    bool progress = false;
    const auto found = best_.case_.profiles.find(spec.name);
    if (found == best_.case_.profiles.end() || found->second.kind != "literal") {
      const Result<Materialised> filled = MaterialisePlain(instance_, best_.case_);
      if (!filled) return false;
      const Tensor& tensor = filled->inputs.find(spec.name)->second;
      if (tensor.elements == 0 || tensor.elements > limits_.max_literal) return false;
      Probe probe = best_;
      Profile literal{.kind = "literal", .parameters = {}, .literal = {}};
      for (std::int64_t i = 0; i < tensor.elements; ++i) literal.literal.push_back(tensor.At(i));
      probe.case_.profiles[spec.name] = std::move(literal);
      if (!TakeFirst({std::move(probe)})) return false;
      progress = true;
    }
    for (const double plain : {0.0, 1.0}) {
      const std::size_t size = LiteralOf(spec).size();
      for (std::size_t chunk = std::max<std::size_t>(size, 1); chunk > 0 && !Spent(); chunk /= 2) {
        progress = MakePlain(spec, plain, chunk) || progress;
      }
    }
    return progress;
  }

  std::vector<double>& LiteralOf(const ops::TensorSpec& spec) {
    return best_.case_.profiles[spec.name].literal;
  }

  bool MakePlain(const ops::TensorSpec& spec, double plain, std::size_t chunk) {
    bool progress = false;
    for (std::size_t start = 0; start < LiteralOf(spec).size() && !Spent(); start += chunk) {
      std::vector<Probe> probes;
      for (std::size_t at = start; at < LiteralOf(spec).size() && probes.size() < kBatch;
           at += chunk) {
        Probe probe = best_;
        std::vector<double>& values = probe.case_.profiles[spec.name].literal;
        const std::size_t end = std::min(at + chunk, values.size());
        // Zeros stay: they are plainer than ones.
        for (std::size_t i = at; i < end; ++i) {
          if (values[i] != 0) values[i] = plain;
        }
        if (ShortlexLess(instance_, probe.case_, best_.case_)) probes.push_back(std::move(probe));
        start = at;
      }
      if (TakeFirst(probes)) progress = true;
    }
    return progress;
  }

  // Rows (columns, ...) of literals taken out, halves first: what matters may stand at the end.
  // Of long axes only the first few slices of each size are tried.
  bool DropSlices(std::int64_t longest) {
    bool progress = false;
    for (const ops::Axis& axis : instance_.op.axes) {
      const auto found = best_.case_.axes.find(axis.name);
      if (found == best_.case_.axes.end() || found->second > longest) continue;
      for (std::int64_t chunk = (found->second + 1) / 2; chunk > 0 && !Spent(); chunk /= 2) {
        int tries = 0;
        for (std::int64_t at = 0; at + chunk <= ExtentOf(axis.name) && !Spent();) {
          std::vector<Probe> probes;
          for (std::int64_t next = at; next + chunk <= ExtentOf(axis.name) &&
                                       probes.size() < kBatch && tries < kSlicesOfASize;
               next += chunk) {
            auto probe = WithoutSlices(axis.name, next, chunk);
            if (!probe) break;
            probes.push_back(std::move(*probe));
            ++tries;
          }
          const auto count = static_cast<std::int64_t>(probes.size());
          if (count == 0) break;
          const auto taken = TakeFirst(std::move(probes));
          progress = progress || taken;
          // What stood behind the slice that went stands in its place.
          at += chunk * (taken ? static_cast<std::int64_t>(*taken) : count);
        }
      }
    }
    return progress;
  }

  std::int64_t ExtentOf(const std::string& axis) const {
    return best_.case_.axes.find(axis)->second;
  }

  // Nothing when the shorter axis is not admissible or no literal runs along it. Earlier calls of
  // the same shape lose the same slices.
  std::optional<Probe> WithoutSlices(const std::string& axis, std::int64_t at,
                                     std::int64_t count) const {
    Probe probe = best_;
    const auto before = ops::ResolveAxes(instance_.op, best_.case_.axes);
    if (!before || !Slice(probe.case_, *before, axis, at, count)) return std::nullopt;
    for (Case& call : probe.prelude) {
      if (call.axes == best_.case_.axes) Slice(call, *before, axis, at, count);
    }
    if (!ShortlexLess(instance_, probe.case_, best_.case_)) return std::nullopt;
    return probe;
  }

  bool Slice(Case& value, const ops::AxisValues& before, const std::string& axis, std::int64_t at,
             std::int64_t count) const {
    value.axes[axis] -= count;
    if (!ops::ResolveAxes(instance_.op, value.axes)) return false;
    bool any = false;
    for (const ops::TensorSpec& spec : instance_.op.inputs) {
      const auto profile = value.profiles.find(spec.name);
      if (profile == value.profiles.end() || profile->second.kind != "literal") continue;
      const auto shape = ops::ResolveShape(spec, before);
      if (!shape) return false;
      for (std::size_t dim = 0; dim < spec.shape.size(); ++dim) {
        if (spec.shape[dim].text() != axis) continue;
        Erase(profile->second.literal, *shape, dim, at, count);
        any = true;
      }
    }
    return any;
  }

  static void Erase(std::vector<double>& values, const Shape& shape, std::size_t dim,
                    std::int64_t at, std::int64_t count) {
    std::int64_t inner = 1;
    for (std::size_t d = dim + 1; d < shape.size(); ++d) inner *= shape[d];
    std::vector<double> kept;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::int64_t along = static_cast<std::int64_t>(i) / inner % shape[dim];
      if (along < at || along >= at + count) kept.push_back(values[i]);
    }
    values = std::move(kept);
  }

  bool ShrinkSurroundings() {
    const Probe plain;
    bool progress = false;
    const auto attempt = [&](auto change) {
      Probe probe = best_;
      change(probe);
      if (!(probe == best_)) progress = TakeFirst({std::move(probe)}).has_value() || progress;
    };
    attempt([&](Probe& probe) { probe.schedule = plain.schedule; });
    attempt([&](Probe& probe) { probe.schedule.seed = 0; });
    attempt([&](Probe& probe) { probe.perturbation_seed = 0; });
    attempt([&](Probe& probe) { probe.reuse_addresses = false; });
    attempt([&](Probe& probe) { probe.misalign = 0; });
    attempt([&](Probe& probe) { probe.poison = plain.poison; });
    return progress;
  }

  const ops::Instance& instance_;
  Probe best_;
  const StillFails& still_fails_;
  ShrinkLimits limits_;
  int trials_ = 0;
  std::vector<Probe> passing_;  // Those that were tried and do not fail.
};

}  // namespace

Shrunk Shrink(const ops::Instance& instance, Probe start, const StillFails& still_fails,
              const ShrinkLimits& limits) {
  return Shrinker(instance, std::move(start), still_fails, limits).Run();
}

}  // namespace assay::cases
