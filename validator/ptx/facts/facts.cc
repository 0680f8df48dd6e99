#include "validator/ptx/facts/facts.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

namespace assay::facts {
namespace {

/// No document of ours has longer lists; one that has was not written by an honest worker.
constexpr std::size_t kLongestList = 1u << 17;

template <class E>
struct Words;
template <>
struct Words<Answer> {
  static constexpr std::array<std::string_view, 3> kNames = {"no", "yes", "unknown"};
};
template <>
struct Words<Use::Kind> {
  static constexpr std::array<std::string_view, 4> kNames = {"opcode", "register", "callee",
                                                             "literal_address"};
};
template <>
struct Words<Constant::How> {
  static constexpr std::array<std::string_view, 4> kNames = {"compared", "divisor", "mask",
                                                             "shift"};
};

template <>
struct Words<Node::Op> {
  static constexpr std::array<std::string_view, 30> kNames = {
      "constant", "parameter", "special", "memory", "counter", "choice", "select", "convert",
      "add",      "sub",       "mul",     "mulhi",  "div",     "rem",    "and",    "or",
      "xor",      "not",       "neg",     "abs",    "shl",     "shr",    "min",    "max",
      "eq",       "ne",        "lt",      "le",     "gt",      "ge"};
};
template <>
struct Words<Node::Type> {
  static constexpr std::array<std::string_view, 8> kNames = {"u16", "s16", "u32",  "s32",
                                                             "u64", "s64", "real", "bool"};
};

// Each struct once: `each(key, member)` for its members, used to write and to read.
template <class T, class Each>
void Members(Site*, T& of, const Each& each) {
  each("function", of.function);
  each("instruction", of.instruction);
  each("ptx_line", of.ptx_line);
  each("file", of.file);
  each("line", of.line);
  each("own_line", of.own_line);
  each("in_header", of.in_header);
}
template <class T, class Each>
void Members(Use*, T& of, const Each& each) {
  each("kind", of.kind);
  each("name", of.name);
  each("count", of.count);
  each("sites", of.sites);
  each("sites_left_out", of.sites_left_out);
}
template <class T, class Each>
void Members(Constant*, T& of, const Each& each) {
  each("how", of.how);
  each("real", of.real);
  each("integer", of.integer);
  each("number", of.number);
  each("own_line", of.own_line);
}
template <class T, class Each>
void Members(Node*, T& of, const Each& each) {
  each("op", of.op);
  each("type", of.type);
  each("value", of.value);
  each("of", of.of);
}
template <class T, class Each>
void Members(Decision*, T& of, const Each& each) {
  each("entry", of.entry);
  each("limit", of.limit);
  each("nodes", of.nodes);
  each("left", of.left);
  each("right", of.right);
  each("branch_line", of.branch_line);
  each("own_line", of.own_line);
}
template <class T, class Each>
void Members(Variable*, T& of, const Each& each) {
  each("name", of.name);
  each("shown", of.shown);
  each("bytes", of.bytes);
  each("extern", of.is_extern);
  each("weak", of.is_weak);
  each("written", of.written);
  each("writes", of.writes);
  each("ptx_line", of.ptx_line);
}
template <class T, class Each>
void Members(MemoryUse*, T& of, const Each& each) {
  each("opcode", of.opcode);
  each("space", of.space);
  each("reads", of.reads);
  each("writes", of.writes);
  each("origins", of.origins);
  each("ptx_line", of.ptx_line);
  each("own_line", of.own_line);
}
template <class T, class Each>
void Members(Atomic*, T& of, const Each& each) {
  each("operation", of.operation);
  each("type", of.type);
  each("shared", of.shared);
  each("on_float", of.on_float);
  each("result_used", of.result_used);
  each("site", of.site);
}
template <class T, class Each>
void Members(Bounds*, T& of, const Each& each) {
  each("max_threads", of.max_threads);
  each("required_threads", of.required_threads);
  each("cluster", of.cluster);
  each("explicit_cluster", of.explicit_cluster);
}
template <class T, class Each>
void Members(Function*, T& of, const Each& each) {
  each("name", of.name);
  each("entry", of.is_entry);
  each("defined", of.is_defined);
  each("weak", of.is_weak);
  each("extern", of.is_extern);
  each("calls", of.calls);
  each("calls_unknown", of.calls_unknown);
  each("recursive", of.recursive);
  each("barriers", of.barriers);
  each("polls", of.polls);
  each("blocks_depend", of.blocks_depend);
  each("blocks_depend_on", of.blocks_depend_on);
  each("bounds", of.bounds);
  each("ptx_line", of.ptx_line);
}
template <class T, class Each>
void Members(Facts*, T& of, const Each& each) {
  each("fault", of.fault);
  each("uses", of.uses);
  each("constants", of.constants);
  each("decisions", of.decisions);
  each("variables", of.variables);
  each("memory", of.memory);
  each("memory_left_out", of.memory_left_out);
  each("atomics", of.atomics);
  each("atomics_left_out", of.atomics_left_out);
  each("functions", of.functions);
}

template <class T>
concept HasMembers = requires(T& of) { Members(static_cast<T*>(nullptr), of, [](auto&&...) {}); };

template <class T>
Json Write(const T& value);

template <class T>
Json WriteList(const T& values) {
  Json list = Json::array();
  for (const auto& value : values) list.push_back(Write(value));
  return list;
}

template <class T>
Json Write(const T& value) {
  if constexpr (std::is_same_v<T, double>) {
    return std::bit_cast<std::uint64_t>(value);  // infinities and NaNs are no JSON numbers
  } else if constexpr (std::is_enum_v<T>) {
    return Words<T>::kNames[static_cast<std::size_t>(value)];
  } else if constexpr (HasMembers<T>) {
    Json object = Json::object();
    Members(static_cast<T*>(nullptr), value,
            [&object](const char* key, const auto& member) { object[key] = Write(member); });
    return object;
  } else if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>) {
    return value;
  } else {
    return WriteList(value);
  }
}

template <class T>
Status Read(const Json& json, const std::string& place, T& out);

template <class T>
Status ReadNumber(const Json& json, const std::string& place, T& out) {
  ASSAY_TRY(const std::uint64_t number, json_detail::Convert<std::uint64_t>(json, place));
  out = static_cast<T>(number);
  if (static_cast<std::uint64_t>(out) != number)
    return Fail(ErrorKind::kMalformedInput, "is too large", place);
  return {};
}

template <class T>
Status ReadWord(const Json& json, const std::string& place, T& out) {
  ASSAY_TRY(const std::string word, json_detail::Convert<std::string>(json, place));
  const auto& names = Words<T>::kNames;
  const auto found = std::ranges::find(names, word);
  if (found == names.end())
    return Fail(ErrorKind::kMalformedInput, "is no word that is known here", place);
  out = static_cast<T>(found - names.begin());
  return {};
}

template <class T>
Status ReadMembers(const Json& json, const std::string& place, T& out) {
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(json, place));
  Status status;
  Members(static_cast<T*>(nullptr), out, [&](const char* key, auto& member) {
    if (!status) return;
    if (!json.contains(key)) {
      status = Fail(ErrorKind::kMalformedInput, "is missing", reader.PlaceOf(key));
      return;
    }
    reader.Ignore(key);
    status = Read(json[key], reader.PlaceOf(key), member);
  });
  ASSAY_TRY_VOID(status);
  return reader.Finish();
}

template <class T>
Status ReadList(const Json& json, const std::string& place, std::vector<T>& out) {
  if (!json.is_array() || json.size() > kLongestList)
    return Fail(ErrorKind::kMalformedInput, "must be a list that is not too long", place);
  out.resize(json.size());
  for (std::size_t i = 0; i < out.size(); ++i)
    ASSAY_TRY_VOID(Read(json[i], place + "/" + std::to_string(i), out[i]));
  return {};
}

template <std::size_t n>
Status ReadList(const Json& json, const std::string& place, std::array<std::uint32_t, n>& out) {
  if (!json.is_array() || json.size() != n)
    return Fail(ErrorKind::kMalformedInput, "has the wrong length", place);
  for (std::size_t i = 0; i < n; ++i)
    ASSAY_TRY_VOID(Read(json[i], place + "/" + std::to_string(i), out[i]));
  return {};
}

template <class T>
Status Read(const Json& json, const std::string& place, T& out) {
  if constexpr (std::is_same_v<T, double>) {
    ASSAY_TRY(const std::uint64_t bits, json_detail::Convert<std::uint64_t>(json, place));
    out = std::bit_cast<double>(bits);
    return {};
  } else if constexpr (std::is_enum_v<T>) {
    return ReadWord(json, place, out);
  } else if constexpr (HasMembers<T>) {
    return ReadMembers(json, place, out);
  } else if constexpr (std::is_same_v<T, std::uint32_t> || std::is_same_v<T, std::uint64_t>) {
    return ReadNumber(json, place, out);
  } else if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>) {
    ASSAY_TRY(out, json_detail::Convert<T>(json, place));
    return {};
  } else {
    return ReadList(json, place, out);
  }
}

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
      return 1;
    case Op::kSelect:
      return 3;
    default:
      return 2;
  }
}

/// Whoever evaluates them relies on their order.
Status CheckDecisions(const Facts& facts, const std::string& place) {
  for (const Decision& decision : facts.decisions) {
    bool sound = decision.left < decision.nodes.size() && decision.right < decision.nodes.size();
    for (std::size_t i = 0; i < decision.nodes.size(); ++i) {
      const Node& node = decision.nodes[i];
      sound = sound && node.of.size() == OperandsOf(node.op) &&
              std::ranges::all_of(node.of, [&](std::uint32_t operand) { return operand < i; });
    }
    if (!sound)
      return Fail(ErrorKind::kMalformedInput, "is not in postfix order", place + "/decisions");
  }
  return {};
}

}  // namespace

std::string_view Name(Answer answer) {
  return Words<Answer>::kNames[static_cast<std::size_t>(answer)];
}

const Use* Facts::FindUse(Use::Kind kind, std::string_view name) const {
  const auto found = std::ranges::find_if(
      uses, [&](const Use& use) { return use.kind == kind && use.name == name; });
  return found == uses.end() ? nullptr : &*found;
}

const Function* Facts::FindFunction(std::string_view name) const {
  const auto found = std::ranges::find(functions, name, &Function::name);
  return found == functions.end() ? nullptr : &*found;
}

Json ToJson(const Facts& facts) { return Write(facts); }

Result<Facts> FactsFromJson(const Json& json, const std::string& place) {
  Facts facts;
  ASSAY_TRY_VOID(Read(json, place, facts));
  ASSAY_TRY_VOID(CheckDecisions(facts, place));
  return facts;
}

}  // namespace assay::facts
