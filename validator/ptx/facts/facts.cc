#include "validator/ptx/facts/facts.h"

#include <algorithm>
#include <bit>

#include "base/fields.h"

namespace assay::facts {
namespace {

constexpr std::array<std::string_view, 3> kAnswers = {"no", "yes", "unknown"};
constexpr std::array<std::string_view, 4> kUses = {"opcode", "register", "callee",
                                                   "literal_address"};
constexpr std::array<std::string_view, 3> kUnits = {"thread", "warp", "block"};
constexpr std::array<std::string_view, 5> kHows = {"compared", "divisor", "mask", "shift", "table"};
constexpr std::array<std::string_view, 31> kOps = {
    "constant", "parameter", "special", "memory", "counter", "choice", "select", "convert",
    "add",      "sub",       "mul",     "mulhi",  "div",     "rem",    "and",    "or",
    "xor",      "not",       "neg",     "abs",    "sqrt",    "shl",    "shr",    "min",
    "max",      "eq",        "ne",      "lt",     "le",      "gt",     "ge"};
constexpr std::array<std::string_view, 4> kBecomes = {"nothing", "lower", "nearest", "upper"};
constexpr std::array<std::string_view, 8> kTypes = {"u16", "s16", "u32",  "s32",
                                                    "u64", "s64", "real", "bool"};

/// The bits of a double: infinities and NaNs are no JSON numbers, and every NaN is its own.
struct NumberBits {
  static Json Write(double value) { return std::bit_cast<std::uint64_t>(value); }
  static Result<double> Read(const Json& json, const std::string& place) {
    ASSAY_TRY(const std::uint64_t bits, ReadJson<std::uint64_t>(json, place));
    return std::bit_cast<double>(bits);
  }
};

std::size_t OperandsOf(Node::Op op) {
  using Op = Node::Op;
  switch (op) {
    case Op::kConstant:
    case Op::kParameter:
    case Op::kSpecial:
    case Op::kMemory:
      return 0;
    case Op::kConvert:
    case Op::kNot:
    case Op::kNegate:
    case Op::kAbsolute:
    case Op::kSquareRoot:
      return 1;
    case Op::kSelect:
      return 3;
    default:
      return 2;
  }
}

}  // namespace

static constexpr std::span<const std::string_view> JsonWords(const Answer*) { return kAnswers; }
static constexpr std::span<const std::string_view> JsonWords(const Unit*) { return kUnits; }
static constexpr std::span<const std::string_view> JsonWords(const Use::Kind*) { return kUses; }
static constexpr std::span<const std::string_view> JsonWords(const Constant::How*) { return kHows; }
static constexpr std::span<const std::string_view> JsonWords(const Node::Op*) { return kOps; }
static constexpr std::span<const std::string_view> JsonWords(const Node::Type*) { return kTypes; }
static constexpr std::span<const std::string_view> JsonWords(const Decision::Becomes*) {
  return kBecomes;
}

static constexpr auto JsonFields(const Site*) {
  using T = Site;
  return std::tuple(Required("function", &T::function), Required("instruction", &T::instruction),
                    Required("ptx_line", &T::ptx_line), Required("file", &T::file),
                    Required("line", &T::line), Required("own_line", &T::own_line),
                    Required("in_header", &T::in_header));
}
static constexpr auto JsonFields(const Use*) {
  using T = Use;
  return std::tuple(Required("kind", &T::kind), Required("name", &T::name),
                    Required("count", &T::count), Required("sites", &T::sites),
                    Required("sites_left_out", &T::sites_left_out));
}
static constexpr auto JsonFields(const Constant*) {
  using T = Constant;
  return std::tuple(Required("how", &T::how), Required("real", &T::real),
                    Required("integer", &T::integer), Required<NumberBits>("number", &T::number),
                    Required("own_line", &T::own_line));
}
static constexpr auto JsonFields(const Node*) {
  using T = Node;
  return std::tuple(Required("op", &T::op), Required("type", &T::type),
                    Required("value", &T::value), Required("of", &T::of));
}
static constexpr auto JsonFields(const Decision*) {
  using T = Decision;
  return std::tuple(Required("entry", &T::entry), Required("limit", &T::limit),
                    Required("becomes", &T::becomes), Required("nodes", &T::nodes),
                    Required("left", &T::left), Required("right", &T::right),
                    Required("branch_line", &T::branch_line), Required("own_line", &T::own_line));
}
/// Whoever evaluates them relies on their order.
static Status JsonCheck(const Decision& decision, const ObjectReader& reader) {
  bool sound = decision.left < decision.nodes.size() && decision.right < decision.nodes.size();
  for (std::size_t i = 0; i < decision.nodes.size(); ++i) {
    const Node& node = decision.nodes[i];
    sound = sound && node.of.size() == OperandsOf(node.op) &&
            std::ranges::all_of(node.of, [&](std::uint32_t operand) { return operand < i; });
  }
  if (sound) return {};
  return Fail(ErrorKind::kMalformedInput, "is not in postfix order", reader.PlaceOf("nodes"));
}
static constexpr auto JsonFields(const Variable*) {
  using T = Variable;
  return std::tuple(Required("name", &T::name), Required("shown", &T::shown),
                    Required("bytes", &T::bytes), Required("extern", &T::is_extern),
                    Required("weak", &T::is_weak), Required("written", &T::written),
                    Required("writes", &T::writes), Required("ptx_line", &T::ptx_line));
}
static constexpr auto JsonFields(const MemoryUse*) {
  using T = MemoryUse;
  return std::tuple(Required("opcode", &T::opcode), Required("space", &T::space),
                    Required("reads", &T::reads), Required("writes", &T::writes),
                    Required("origins", &T::origins), Required("ptx_line", &T::ptx_line),
                    Required("own_line", &T::own_line));
}
static constexpr auto JsonFields(const Atomic*) {
  using T = Atomic;
  return std::tuple(Required("operation", &T::operation), Required("type", &T::type),
                    Required("shared", &T::shared), Required("on_float", &T::on_float),
                    Required("result_used", &T::result_used), Required("site", &T::site));
}
static constexpr auto JsonFields(const Bounds*) {
  using T = Bounds;
  return std::tuple(
      Required("max_threads", &T::max_threads), Required("required_threads", &T::required_threads),
      Required("cluster", &T::cluster), Required("explicit_cluster", &T::explicit_cluster));
}
static constexpr auto JsonFields(const Function*) {
  using T = Function;
  return std::tuple(
      Required("name", &T::name), Required("entry", &T::is_entry),
      Required("defined", &T::is_defined), Required("weak", &T::is_weak),
      Required("extern", &T::is_extern), Required("calls", &T::calls),
      Required("calls_unknown", &T::calls_unknown), Required("recursive", &T::recursive),
      Required("barriers", &T::barriers), Required("unit", &T::unit), Required("polls", &T::polls),
      Required("blocks_depend", &T::blocks_depend),
      Required("blocks_depend_on", &T::blocks_depend_on), Required("only_adds", &T::only_adds),
      Required("bounds", &T::bounds), Required("ptx_line", &T::ptx_line));
}
static constexpr auto JsonFields(const Facts*) {
  using T = Facts;
  return std::tuple(
      Required("fault", &T::fault), Required("uses", &T::uses),
      Required("constants", &T::constants), Required("decisions", &T::decisions),
      Required("variables", &T::variables), Required("memory", &T::memory),
      Required("memory_left_out", &T::memory_left_out), Required("atomics", &T::atomics),
      Required("atomics_left_out", &T::atomics_left_out), Required("functions", &T::functions));
}

std::string_view Name(Answer answer) { return kAnswers[static_cast<std::size_t>(answer)]; }

const Use* Facts::FindUse(Use::Kind kind, std::string_view name) const {
  const auto found = std::ranges::find_if(
      uses, [&](const Use& use) { return use.kind == kind && use.name == name; });
  return found == uses.end() ? nullptr : &*found;
}

const Function* Facts::FindFunction(std::string_view name) const {
  const auto found = std::ranges::find(functions, name, &Function::name);
  return found == functions.end() ? nullptr : &*found;
}

Json ToJson(const Facts& facts) { return WriteJson(facts); }
Result<Facts> FactsFromJson(const Json& json, const std::string& place) {
  return ReadJson<Facts>(json, place);
}

}  // namespace assay::facts
