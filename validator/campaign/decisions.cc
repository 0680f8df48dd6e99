#include "validator/campaign/decisions.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <set>

#include "validator/campaign/compute_nodes.h"
#include "validator/campaign/node_values.h"
#include "validator/campaign/turns.h"

namespace assay::campaign {
namespace {

using facts::Node;
using Op = Node::Op;
using Type = Node::Type;

constexpr std::size_t kMostViews = 320;

Outcome Difference(Type type, Value a, Value b) {
  Outcome outcome;
  outcome.sign = Compare(type, a, b);
  if (a.is_real() || IsSigned(type)) {
    outcome.gap = AsReal(a) - AsReal(b);
  } else {
    outcome.gap = static_cast<double>(static_cast<std::uint64_t>(a.bits)) -
                  static_cast<double>(static_cast<std::uint64_t>(b.bits));
  }
  return outcome;
}

/// What `n & mask` or `n % by` can be at most, where that is compared with 0 and small.
std::int64_t MostRest(const facts::Decision& decision) {
  constexpr std::int64_t kSmall = 8;
  const Node& right = decision.nodes[decision.right];
  const Node* left = &decision.nodes[decision.left];
  if (left->op == Op::kConvert) left = &decision.nodes[left->of[0]];
  const Node* zero = &right;
  if (zero->op == Op::kConvert) zero = &decision.nodes[zero->of[0]];
  if (zero->op != Op::kConstant || zero->value != 0) return 0;
  if (left->op != Op::kAnd && left->op != Op::kRemainder) return 0;
  const Node& by = decision.nodes[left->of[1]];
  const std::int64_t most = left->op == Op::kAnd ? by.value : by.value - 1;
  return by.op == Op::kConstant && most < kSmall ? std::max<std::int64_t>(most, 0) : 0;
}

/// Operations whose low bits are the same in any width: a wider one gives what the narrow one would
/// have given, had it had room.
bool GrowsFreely(Op op) {
  constexpr std::array kFree = {Op::kConstant, Op::kParameter, Op::kSpecial, Op::kCounter,
                                Op::kChoice,   Op::kSelect,    Op::kConvert, Op::kAdd,
                                Op::kSubtract, Op::kMultiply,  Op::kNegate,  Op::kShiftLeft};
  return std::ranges::find(kFree, op) != kFree.end();
}
Type Whole(Type type) { return type == Type::kReal || type == Type::kBool ? type : Type::kS64; }
Type Signed(Type type) {
  return type == Type::kU32 ? Type::kS32 : type == Type::kU16 ? Type::kS16 : type;
}

bool Uses(const facts::Decision& decision, Op op) {
  return std::ranges::find(decision.nodes, op, &Node::op) != decision.nodes.end();
}

/// No case changes it: it hangs on the turns of a loop alone.
bool CountsAlone(const facts::Decision& decision) {
  return Uses(decision, Op::kCounter) && !Uses(decision, Op::kParameter) &&
         !Uses(decision, Op::kMemory) && std::ranges::none_of(decision.nodes, [](const Node& node) {
           return node.op == Op::kSpecial && node.value >= 12 && node.value < 16;
         });
}

bool DependsOnThread(const facts::Decision& decision) {
  return std::ranges::any_of(decision.nodes, [](const Node& node) {
    const std::int64_t group = node.value / 4;
    return node.op == Op::kSpecial && (group == 0 || group == 2 || group == 4);
  });
}

}  // namespace

Decisions::Decisions(const ops::Instance& instance, const ops::LaunchPlan& plan,
                     const engine::CompiledKernel& compiled)
    : instance_(instance), plan_(plan) {
  AddPlan(plan);
  AddConstantExtents(plan);
  if (compiled.facts == nullptr) return;
  AddLimits(*compiled.facts, compiled);
  AddRounded(*compiled.facts, compiled);
  AddProgram(*compiled.facts, compiled);
  NoteWhatIsLookedAt();
}

void Decisions::NoteWhatIsLookedAt() {
  for (View& view : views_) {
    if (view.decision == nullptr) continue;
    std::set<std::size_t> parameters;
    const auto look = [&](const facts::Decision& decision) {
      for (const Node& node : decision.nodes) {
        if (node.op == Op::kParameter && node.value >= 0)
          parameters.insert(static_cast<std::size_t>(node.value));
        view.extents = view.extents || node.op == Op::kSpecial;
      }
    };
    look(*view.decision);
    for (const auto& [counter, end] : view.loops) look(*end);
    view.parameters.assign(parameters.begin(), parameters.end());
  }
}

void Decisions::AddPlan(const ops::LaunchPlan& plan) {
  std::vector<std::string> seen;
  const auto add = [&](const ops::Expression& expression, std::size_t kernel) {
    if (std::ranges::find(seen, expression.text()) != seen.end()) return;
    seen.push_back(expression.text());
    // Their number is the same at all values.
    const std::size_t kinks = expression.Kinks({}).size();
    for (std::size_t k = 0; k < kinks; ++k)
      views_.push_back({.expression = &expression, .kink = k, .kernel = kernel, .input = {}});
    const std::size_t quotients = expression.Quotients({}).size();
    for (std::size_t k = 0; k < quotients; ++k) {
      views_.push_back(
          {.expression = &expression, .kink = k, .quotient = true, .kernel = kernel, .input = {}});
    }
  };
  for (std::size_t i = 0; i < plan.kernels.size(); ++i) {
    const ops::KernelPlan& kernel = plan.kernels[i];
    for (const auto* extents : {&kernel.grid, &kernel.block, &kernel.cluster}) {
      for (const ops::Expression& extent : *extents) add(extent, i);
    }
    add(kernel.shared_bytes, i);
  }
  for (const ops::WorkspacePlan& workspace : plan.workspace) {
    for (const ops::Expression& extent : workspace.shape) add(extent, 0);
  }
}

void Decisions::AddConstantExtents(const ops::LaunchPlan& plan) {
  std::set<std::int64_t> extents;
  for (const ops::KernelPlan& kernel : plan.kernels) {
    for (std::size_t d = 0; d < 3; ++d) {
      if (!kernel.grid[d].names().empty()) continue;
      const std::int64_t blocks = kernel.grid[d].Evaluate({}).value_or(1);
      const std::int64_t threads =
          kernel.block[d].names().empty() ? kernel.block[d].Evaluate({}).value_or(1) : 1;
      if (blocks < 2 || threads < 1 || threads > 1024 || blocks > INT32_MAX) continue;
      extents.insert(blocks);
      extents.insert(blocks * threads);
    }
  }
  for (const std::int64_t extent : extents) {
    for (const ops::Axis& axis : instance_.op.axes) {
      if (axis.kind == ops::Axis::Kind::kVariable && axis.min <= extent && axis.max > extent)
        views_.push_back({.axis = &axis, .extent = extent, .input = {}});
    }
  }
}

std::vector<std::int64_t> Decisions::TurnsOfLoops(const facts::Facts& program,
                                                  const engine::CompiledKernel& compiled) const {
  constexpr std::int64_t kMostTurns = 1 << 20;
  constexpr std::size_t kMostKept = 6;
  std::set<std::int64_t> turns;
  const std::vector<ops::AxisValues> bases = BasesOf(instance_);
  const auto point = bases.empty() ? std::nullopt : At(bases.back());
  if (!point) return {};
  for (const facts::Decision& decision : program.decisions) {
    if (!decision.Compares() || !CountsAlone(decision)) continue;
    for (std::size_t i = 0; i < plan_.kernels.size(); ++i) {
      const auto lowered = compiled.lowered.find(plan_.kernels[i].entry);
      if (lowered == compiled.lowered.end() || lowered->second != decision.entry) continue;
      View view{.decision = &decision, .kernel = i, .input = {}};
      const auto sign_at = [&](std::int64_t turn) {
        view.turn = turn;
        const auto outcome = Of(view, *point, 0);
        return outcome ? outcome->sign : 2;
      };
      const int first = sign_at(0);
      std::int64_t low = 0;
      std::int64_t high = 1;
      while (high < kMostTurns && sign_at(high) == first) {
        low = high;
        high *= 2;
      }
      if (high >= kMostTurns) continue;
      while (high - low > 1) {
        const std::int64_t middle = low + (high - low) / 2;
        (sign_at(middle) == first ? low : high) = middle;
      }
      for (const std::int64_t turn : {low, high, high + 1}) {
        if (turn > 1 && turns.size() < kMostKept) turns.insert(turn);
      }
    }
  }
  return {turns.begin(), turns.end()};
}

void Decisions::AddProgram(const facts::Facts& program, const engine::CompiledKernel& compiled) {
  std::vector<std::int64_t> turns = TurnsOfLoops(program, compiled);
  turns.insert(turns.begin(), {0, 1});
  std::vector<View> plain;
  for (const facts::Decision& decision : program.decisions) {
    if (!decision.Compares() || CountsAlone(decision)) continue;
    for (std::size_t i = 0; i < plan_.kernels.size(); ++i) {
      const auto lowered = compiled.lowered.find(plan_.kernels[i].entry);
      if (lowered == compiled.lowered.end() || lowered->second != decision.entry) continue;
      View view{.decision = &decision, .kernel = i, .input = {}};
      view.periodic = Uses(decision, Op::kAnd) || Uses(decision, Op::kRemainder) ||
                      Uses(decision, Op::kMultiplyHigh) || Uses(decision, Op::kShiftRight);
      bool of_case = true;
      for (const Node& node : decision.nodes) {
        if (node.op != Op::kMemory || node.value < 0 ||
            static_cast<std::size_t>(node.value) >= plan_.kernels[i].args.size())
          continue;
        view.input = plan_.kernels[i].args[static_cast<std::size_t>(node.value)];
        // Of workspace: nothing that a case holds.
        of_case = of_case && instance_.op.FindInput(view.input) != nullptr;
      }
      if (of_case) plain.push_back(view);
    }
  }
  // Each as it is before any in its other views.
  for (const bool second_way : {false, true}) {
    for (const bool last_thread : {false, true}) {
      for (const std::int64_t turn : turns) {
        for (View view : plain) {
          if ((turn > 0 && !Uses(*view.decision, Op::kCounter)) ||
              (second_way && !Uses(*view.decision, Op::kChoice)) ||
              (last_thread && !DependsOnThread(*view.decision)))
            continue;
          view.turn = turn;
          view.second_way = second_way;
          view.last_thread = last_thread;
          for (view.rest = 0; view.rest <= MostRest(*view.decision); ++view.rest) {
            if (views_.size() < kMostViews) views_.push_back(view);
          }
        }
      }
    }
  }
}

std::optional<Decisions::Point> Decisions::At(const ops::AxisValues& axes) const {
  auto complete = ops::ResolveAxes(instance_.op, axes);
  if (!complete) return std::nullopt;
  Point point;
  point.axes = std::move(*complete);
  for (const ops::KernelPlan& plan : plan_.kernels) {
    Point::Kernel& kernel = point.kernels.emplace_back();
    kernel.runs = true;
    for (std::size_t d = 0; d < 3; ++d) {
      kernel.grid[d] = plan.grid[d].Evaluate(point.axes).value_or(0);
      kernel.block[d] = plan.block[d].Evaluate(point.axes).value_or(0);
      kernel.runs = kernel.runs && kernel.grid[d] > 0 && kernel.block[d] > 0;
    }
    std::int64_t buffers = 0;
    for (const std::string& name : plan.args) {
      const ops::TensorSpec* input = instance_.op.FindInput(name);
      if (const auto axis = point.axes.find(name); axis != point.axes.end()) {
        kernel.parameters.emplace_back(axis->second);
      } else if (input != nullptr && input->is_scalar) {
        kernel.parameters.emplace_back();
      } else {
        // Addresses are aligned, and not null.
        kernel.parameters.emplace_back(++buffers << 32);
      }
    }
  }
  return point;
}

std::uint32_t Decisions::BranchLine(std::size_t number) const {
  const View& view = views_[number];
  return view.decision != nullptr ? view.decision->branch_line : 0;
}

bool Decisions::IsAlike(std::size_t number, const Point& a, const Point& b) const {
  const View& view = views_[number];
  if (view.decision == nullptr) return false;
  const Point::Kernel &one = a.kernels[view.kernel], &other = b.kernels[view.kernel];
  if (one.runs != other.runs) return false;
  if (view.extents && (one.grid != other.grid || one.block != other.block)) return false;
  return std::ranges::all_of(view.parameters, [&](std::size_t parameter) {
    return parameter >= one.parameters.size() ||
           one.parameters[parameter] == other.parameters[parameter];
  });
}

std::optional<Outcome> Decisions::Of(std::size_t number, const Point& point, double element) const {
  return Of(views_[number], point, element);
}

/// What a view of a decision takes for given (compute_nodes.h).
struct Decisions::ViewContext {
  const View& view;
  const Point::Kernel& kernel;
  const std::vector<double>& last;  ///< Of a limit: LastTurns.
  double element;

  Type TypeOf(const Node& node) const {
    return view.decision->limit && GrowsFreely(node.op) ? Whole(node.type) : node.type;
  }
  Value Constant(const Node& node) const {
    const bool grows = view.decision->limit;
    return Integer(grows ? Signed(node.type) : node.type, node.value);
  }
  std::optional<std::int64_t> Special(std::int64_t which) const {
    const auto component = static_cast<std::size_t>(which % 4);
    const std::array<std::int64_t, 5> groups = {
        view.last_thread && component < 3 ? kernel.block[component] - 1 : 0,
        component < 3 ? kernel.block[component] : 0,
        view.last_thread && component < 3 ? kernel.grid[component] - 1 : 0,
        component < 3 ? kernel.grid[component] : 0,
        view.last_thread ? (kernel.block[0] * kernel.block[1] * kernel.block[2] - 1) % 32 : 0};
    const auto group = static_cast<std::size_t>(which) / 4;
    if (which < 0 || group >= groups.size()) return std::nullopt;
    return groups[group];
  }
  Value Element() const { return RealValue(element); }
  /// What a loop has added up.
  Value Counted(std::size_t number, Type type, Value step) const {
    if (view.decision->limit)
      return Integer(type, Decisions::Counted(view, last[number], step.bits));
    const bool still = view.varied != 0 && view.decision->nodes[number].value != view.varied;
    return Apply(Op::kMultiply, type, Integer(type, still ? 0 : view.turn), step);
  }
  bool second_way() const { return view.second_way; }
  static Value Rounded(Value value) { return value; }
};

std::optional<Outcome> Decisions::Of(const View& view, const Point& point, double element) const {
  if (view.expression != nullptr) {
    const ops::Expression::Kink kink =
        (view.quotient ? view.expression->Quotients(point.axes)
                       : view.expression->Kinks(point.axes))[view.kink];
    if (!kink) return std::nullopt;
    const auto [left, right] = *kink;
    return Difference(Type::kS64, Integer(Type::kS64, left), Integer(Type::kS64, right));
  }
  if (view.axis != nullptr) {
    const auto extent = point.axes.find(view.axis->name);
    if (extent == point.axes.end()) return std::nullopt;
    return Difference(Type::kS64, Integer(Type::kS64, extent->second),
                      Integer(Type::kS64, view.extent));
  }
  const Point::Kernel& kernel = point.kernels[view.kernel];
  if (!kernel.runs) return std::nullopt;
  const facts::Decision& decision = *view.decision;
  const std::vector<double> last = decision.limit ? LastTurns(view, point) : std::vector<double>();
  std::array<Value, kMostNodes> values;
  const ViewContext context{view, kernel, last, element};
  if (!ComputeNodes(decision, kernel.parameters, context, values)) return std::nullopt;
  const Type type = decision.limit ? Type::kS64 : decision.nodes[decision.left].type;
  Value right = view.rest != 0 ? Integer(type, view.rest) : values[decision.right];
  // An eighth past it, where more than the last element goes wrong; or by as much as the last block may have
  // threads too many, which find nothing to do.
  constexpr int kMargin = 17;
  if (decision.limit && !view.exactly)
    right.bits += view.just_past ? right.bits >> kMargin : right.bits / 8;
  if (decision.limit && view.of_blocks) right.bits -= 1;
  return Difference(type, values[decision.left], As(type, right));
}

}  // namespace assay::campaign
