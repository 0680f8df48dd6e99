// Outputs whose elements have truths of their own: every element against its allowance, then rows,
// columns and signs.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "validator/oracle/causes.h"
#include "validator/oracle/describe.h"
#include "validator/oracle/element.h"
#include "validator/oracle/groups.h"
#include "validator/oracle/oracle.h"
#include "validator/oracle/relations.h"

namespace assay::oracle {
namespace {

// Whole outputs that are this far off, in most of their elements, are wrong and not imprecise.
constexpr double kWrongOutput = 0.1;
// Rows and biases need some elements before they say anything that single elements do not.
constexpr double kFewestForBias = 64;
// Honest errors grow like a square root, within so many standard errors of the fit.
constexpr double kHonestGrowth = 0.5;
constexpr double kGrowthErrors = 4;

/// Compares one output.
class OutputComparer {
 public:
  OutputComparer(const Compared& output, Comparison& out)
      : scatters_(output.truth.shape.size() > 1 &&
                  std::ranges::any_of(output.instance.op.inputs,
                                      [](const ops::TensorSpec& input) {
                                        return input.domain.kind == ops::Domain::Kind::kIndex;
                                      })),
        any_nan_(output.AnyNan()),
        instance_(output.instance),
        inputs_(output.inputs),
        contract_(output.instance.op.contract),
        name_(output.spec.name),
        truth_(output.truth),
        got_(output.got),
        out_(out) {}

  void Run() {
    CheckElements();
    groups_ = GroupErrors(truth_, got_);
    FindHotRow();
    if (wrong_count_ + imprecise_count_ > 0) {
      shape_ = ShapeOf(contract_, truth_, got_);
      cause_ = LikelyCause(instance_, inputs_, truth_, got_, groups_, shape_);
      // An output that is off almost everywhere, and by a lot, was not computed as the op says.
      if (shape_.beyond > 0.5 && groups_.all.Relative() > kWrongOutput) Promote();
    }
    AddStatistics();
    if (wrong_count_ > 0)
      AddElementFinding(FindingKind::kWrongValue, wrong_, wrong_count_, out_.numeric);
    if (imprecise_count_ > 0) {
      AddElementFinding(FindingKind::kPrecisionElement, imprecise_, imprecise_count_,
                        out_.precision);
    }
    AddRowFinding();
    AddBiasFinding();
    AddGrowthFinding();
    AddOrderFinding();
    out_.growth[name_].Merge(groups_.growth);
  }

 private:
  struct Worst {
    std::size_t index = 0;
    ElementCheck check;
    bool Beats(const ElementCheck& other) const { return check.allowances >= other.allowances; }
  };

  double GotAt(std::size_t index) const { return got_.At(static_cast<std::int64_t>(index)); }

  void CheckElements() {
    const double unit = UnitRoundoff(contract_.accumulate);
    const std::int64_t columns = truth_.shape.empty() ? 1 : truth_.shape.back();
    const auto elements = static_cast<std::int64_t>(truth_.value.size());
    ErrorProfile& profile =
        out_.profiles
            .emplace(name_, ErrorProfile::Of(name_, columns > 0 ? elements / columns : 0, columns))
            .first->second;
    bool first_wrong = true, first_imprecise = true;
    for (std::size_t i = 0; i < truth_.value.size(); ++i) {
      const ElementCheck check = CheckElement(truth_, i, GotAt(i), any_nan_, unit);
      if (check.verdict == ElementClass::kUnconstrained) {
        ++unconstrained_;
      } else {
        profile.Add(static_cast<std::int64_t>(i), check.allowances);
      }
      if (std::isfinite(check.allowances) && check.allowances > worst_.check.allowances)
        worst_ = {i, check};
      if (check.verdict == ElementClass::kWrong) {
        if (first_wrong || !wrong_.Beats(check)) wrong_ = {i, check};
        first_wrong = false;
        ++wrong_count_;
      } else if (check.verdict == ElementClass::kImprecise) {
        if (first_imprecise || !imprecise_.Beats(check)) imprecise_ = {i, check};
        first_imprecise = false;
        ++imprecise_count_;
      }
    }
  }

  void Promote() {
    if (imprecise_count_ == 0) return;
    if (wrong_count_ == 0 || !wrong_.Beats(imprecise_.check)) wrong_ = imprecise_;
    wrong_count_ += imprecise_count_;
    imprecise_count_ = 0;
  }

  // The row that received most contributions, where rows differ in that; in a scatter they do by nature, even in a table of one.
  void FindHotRow() {
    double least = INFINITY, most = 0;
    for (std::size_t row = 0; row < groups_.rows.size(); ++row) {
      const double contributions = groups_.rows[row].contributions;
      least = std::min(least, contributions);
      if (contributions > most) {
        most = contributions;
        hot_row_ = row;
      }
    }
    has_hot_row_ =
        most > 1 && (scatters_ ? most > least || groups_.rows.size() == 1 : most > 2 * least);
  }

  static const GroupSums* WorstOf(const std::vector<GroupSums>& groups, std::size_t& at) {
    const GroupSums* worst = nullptr;
    for (std::size_t i = 0; i < groups.size(); ++i) {
      if (worst == nullptr || groups[i].Ratio() > worst->Ratio()) {
        worst = &groups[i];
        at = i;
      }
    }
    return worst;
  }

  void AddStatistics() {
    statistics_.push_back(
        {"worst_element_in_allowances", worst_.check.allowances, 1,
         truth_.value.empty() ? name_ : name_ + Subscript(IndexOf(truth_.shape, worst_.index))});
    std::size_t row = 0, column = 0;
    if (const GroupSums* worst = WorstOf(groups_.rows, row)) {
      worst_row_ = row;
      statistics_.push_back({"worst_row_relative_error", worst->Relative(), worst->Limit(),
                             fmt::format("{}: {}, {}", name_, RowName(truth_.shape, row),
                                         Terms(worst->contributions))});
    }
    if (const GroupSums* worst = WorstOf(groups_.columns, column)) {
      statistics_.push_back({"worst_column_relative_error", worst->Relative(), worst->Limit(),
                             fmt::format("{}: column {}", name_, column)});
    }
    if (has_hot_row_) {
      const GroupSums& hot = groups_.rows[hot_row_];
      statistics_.push_back({"hot_row_relative_error", hot.Relative(), hot.Limit(),
                             fmt::format("{}: {} received {:.0f} adds", name_,
                                         RowName(truth_.shape, hot_row_), hot.contributions)});
    }
    if (groups_.bias.elements > 0) {
      statistics_.push_back({"bias_ulps", groups_.bias.Mean(), groups_.bias.Limit(),
                             fmt::format("{}: mean of got - rounded truth; standard error {:.2g}",
                                         name_, groups_.bias.StandardError())});
      statistics_.push_back({"bias_toward_zero_ulps", groups_.bias.MeanTowardZero(),
                             groups_.bias.Limit(),
                             fmt::format("{}: negative when magnitudes are too small", name_)});
      statistics_.push_back({"correctly_rounded_share",
                             static_cast<double>(groups_.ulps[0]) / groups_.bias.elements, 0,
                             name_ + ": elements equal to the rounded truth"});
      statistics_.push_back(
          {"largest_ulps", groups_.largest_ulps, 0, name_ + ": " + Histogram(groups_)});
    }
    if (const auto fit = groups_.growth.Fit()) {
      statistics_.push_back(
          {"error_growth_exponent", fit->exponent, GrowthLimit(*fit),
           fmt::format("{}: over {} octaves up to {:.0f} terms; standard error {:.2g}", name_,
                       fit->octaves, fit->longest, fit->standard_error)});
    }
    if (unconstrained_ > 0) {
      statistics_.push_back({"unconstrained_elements", static_cast<double>(unconstrained_), 0,
                             name_ + ": the accumulator's range is exceeded on the way"});
    }
    out_.statistics.insert(out_.statistics.end(), statistics_.begin(), statistics_.end());
  }

  double GrowthLimit(const GrowthFit& fit) const {
    return truth_.ordinary ? kHonestGrowth + kGrowthErrors * fit.standard_error : 0;
  }

  ElementPlace PlaceOf(std::size_t index) const {
    return {.output = name_,
            .index = IndexOf(truth_.shape, index),
            .expected = truth_.value[index],
            .got = GotAt(index),
            .allowance = truth_.allowance[index]};
  }

  void AddElementFinding(FindingKind kind, const Worst& worst, std::size_t count,
                         std::vector<Finding>& findings) const {
    Finding finding;
    finding.kind = kind;
    finding.element = PlaceOf(worst.index);
    const std::string where = name_ + Subscript(finding.element->index);
    const double value = truth_.value[worst.index];
    const double got = GotAt(worst.index);
    const std::string others =
        count > 1 ? fmt::format("; {} of {} elements are off", count, truth_.value.size()) : "";
    if (kind == FindingKind::kWrongValue) {
      finding.message =
          fmt::format("{} is {}, but the op defines {}{}", where, Shown(got), Shown(value), others);
      finding.cause =
          std::isnan(value) && !std::isnan(got)
              ? "NaN in the input must reach the output; max, min or fast-math swallowed it"
          : std::isfinite(value) && !std::isfinite(got)
              ? CauseOfOverflow(instance_, inputs_, truth_, got_)
              : cause_;
    } else {
      const double contributions = truth_.contributions[worst.index];
      finding.message = fmt::format(
          "{} is {:.9g}, the truth is {:.9g}: off by {:.3g}, {:.1f} times what honest {} "
          "arithmetic{} may be off ({:.3g}){}",
          where, got, value, std::fabs(worst.check.error), worst.check.allowances,
          Name(contract_.accumulate), contributions > 1 ? " over " + Terms(contributions) : "",
          truth_.allowance[worst.index], others);
      finding.cause = cause_;
    }
    finding.statistics = statistics_;
    findings.push_back(std::move(finding));
  }

  void AddRowFinding() {
    if (groups_.rows.empty()) return;
    // The hottest row first: it is the one that training would feel.
    const bool hot = has_hot_row_ && groups_.rows[hot_row_].Ratio() > 1;
    const std::size_t row = hot ? hot_row_ : worst_row_;
    const GroupSums& sums = groups_.rows[row];
    if (!(sums.Ratio() > 1) || wrong_count_ > 0) return;
    Finding finding;
    finding.kind = FindingKind::kPrecisionRow;
    const std::string limit = fmt::format("honest {} arithmetic stays below {:.3g}",
                                          Name(contract_.accumulate), sums.Limit());
    const std::string what =
        truth_.shape.size() < 2 ? name_ : name_ + " " + RowName(truth_.shape, row);
    finding.message =
        hot ? fmt::format("{} received {:.0f} adds and is off by {:.3g} relative to its norm; {}",
                          what, sums.contributions, sums.Relative(), limit)
            : fmt::format("{} is off by {:.3g} relative to its norm; {}", what, sums.Relative(),
                          limit);
    finding.element = PlaceOf(WorstInRow(row));
    finding.statistics = statistics_;
    finding.cause = cause_.empty() ? LikelyCause(instance_, inputs_, truth_, got_, groups_,
                                                 ShapeOf(contract_, truth_, got_))
                                   : cause_;
    out_.precision.push_back(std::move(finding));
  }

  std::size_t WorstInRow(std::size_t row) const {
    const std::size_t columns = truth_.value.size() / groups_.rows.size();
    std::size_t worst = row * columns;
    double most = -1;
    for (std::size_t i = row * columns; i < (row + 1) * columns; ++i) {
      const double error = std::fabs(GotAt(i) - truth_.value[i]);
      if (std::isfinite(error) && error > most) {
        most = error;
        worst = i;
      }
    }
    return worst;
  }

  void AddBiasFinding() {
    const BiasSums& bias = groups_.bias;
    if (bias.elements < kFewestForBias || wrong_count_ > 0) return;
    const bool signed_bias = std::fabs(bias.Mean()) > bias.Limit();
    const bool zero_bias = std::fabs(bias.MeanTowardZero()) > bias.Limit();
    if (!signed_bias && !zero_bias) return;
    Finding finding;
    finding.kind = FindingKind::kPrecisionBias;
    const double mean = zero_bias ? bias.MeanTowardZero() : bias.Mean();
    finding.message = fmt::format(
        "{}: results are {} by {:.3g} ulp on average; honest arithmetic stays below {:.3g} "
        "(standard error {:.2g}, {:.0f} elements)",
        name_,
        zero_bias ? (mean < 0 ? "too small in magnitude" : "too large in magnitude")
                  : (mean < 0 ? "too low" : "too high"),
        std::fabs(mean), bias.Limit(), bias.StandardError(), bias.elements);
    finding.element = PlaceOf(worst_.index);
    finding.statistics = statistics_;
    finding.cause = !cause_.empty() ? cause_ : zero_bias && mean < 0 ? CauseOfShrinking() : "";
    out_.precision.push_back(std::move(finding));
  }

  // Where nothing else tells: errors that are larger than honest ones usually are, and that grow
  // faster.
  void AddGrowthFinding() {
    if (wrong_count_ + imprecise_count_ > 0 || !out_.precision.empty()) return;
    const auto fit = groups_.growth.Fit();
    if (!fit || !truth_.ordinary || !(fit->exponent > GrowthLimit(*fit)) || fit->in_typicals < 1)
      return;
    Finding finding;
    finding.kind = FindingKind::kPrecisionGrowth;
    finding.message = fmt::format(
        "{}: errors grow like length^{:.2f} (standard error {:.2g}), to {:.2g} times what is "
        "typical "
        "of {} at {:.0f} terms; honest arithmetic stays below length^{:.1f}",
        name_, fit->exponent, fit->standard_error, fit->in_typicals, Name(contract_.accumulate),
        fit->longest, kHonestGrowth);
    finding.element = PlaceOf(worst_.index);
    finding.statistics = statistics_;
    finding.cause = groups_.bias.MeanTowardZero() < 0 ? CauseOfGrowth() : "";
    out_.precision.push_back(std::move(finding));
  }

  // The contract forbids reassociation: there is one right order, the reference's.
  void AddOrderFinding() {
    if (wrong_count_ + imprecise_count_ > 0) return;
    std::size_t count = 0, first = 0;
    for (std::size_t i = 0; i < truth_.in_order.size(); ++i) {
      if (!std::isfinite(truth_.in_order[i]) || !std::isfinite(GotAt(i)) ||
          IsInOrder(truth_.dtype, truth_.in_order[i], truth_.in_order_slack[i], GotAt(i)) ||
          IsInOrder(truth_.dtype, truth_.in_order_fused[i], truth_.in_order_slack[i], GotAt(i)))
        continue;
      if (count++ == 0) first = i;
    }
    if (count == 0) return;
    Finding finding;
    finding.kind = FindingKind::kPrecisionElement;
    finding.element = PlaceOf(first);
    finding.element->expected = Rounded(truth_.dtype, truth_.in_order[first]);
    finding.element->allowance = truth_.in_order_slack[first];
    finding.message = fmt::format(
        "{}{} is {:.9g}, but the reference's order gives {:.9g} in {}, and the contract forbids "
        "any "
        "other; {} of {} elements differ",
        name_, Subscript(finding.element->index), GotAt(first), finding.element->expected,
        Name(contract_.accumulate), count, truth_.value.size());
    finding.cause = "terms are added in another order, or in another type";
    finding.statistics = statistics_;
    out_.precision.push_back(std::move(finding));
  }

  const bool scatters_;  // Rows, and indices among the inputs that say where contributions go.
  const bool any_nan_;   // It is open what becomes of NaN.
  const ops::Instance& instance_;
  const TensorMap& inputs_;
  const ops::Contract& contract_;
  std::string name_;
  const OutputTruth& truth_;
  const Tensor& got_;
  Comparison& out_;
  Worst worst_, wrong_, imprecise_;
  std::size_t wrong_count_ = 0, imprecise_count_ = 0, unconstrained_ = 0;
  std::size_t hot_row_ = 0, worst_row_ = 0;
  bool has_hot_row_ = false;
  Groups groups_;
  ErrorShape shape_;
  std::string cause_;
  std::vector<Statistic> statistics_;
};

}  // namespace

void CompareElements(const Compared& output, Comparison& out) { OutputComparer(output, out).Run(); }

}  // namespace assay::oracle
