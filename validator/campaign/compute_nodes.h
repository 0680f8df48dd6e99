// The values of a decision's nodes, one after the other, by what a context takes for given: the thread, the turns of its
// loops, the elements that it loads.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "validator/campaign/node_values.h"
#include "validator/ptx/facts/facts.h"

namespace assay::campaign {

/// The most nodes of a decision (facts/slice.cc).
inline constexpr std::size_t kMostNodes = 64;

/// False where one of them has no value. A context has
///   Type TypeOf(const Node&)                what a node is computed as,
///   Value Constant(const Node&)             an integer,
///   std::optional<int64> Special(int64)     by Node::Op::kSpecial,
///   Value Element()                         that is loaded,
///   Value Counted(number, Type, Value step) what a loop has added up, of node `number`,
///   bool second_way()                       of a choice,
///   Value Rounded(Value)                    a real as it is kept.
template <class Context>
bool ComputeNodes(const facts::Decision& decision,
                  const std::vector<std::optional<std::int64_t>>& parameters,
                  const Context& context, std::array<Value, kMostNodes>& values) {
  using facts::Node;
  using Op = Node::Op;
  using Type = Node::Type;
  const std::size_t count = decision.nodes.size();
  if (count > values.size()) return false;
  for (std::size_t i = 0; i < count; ++i) {
    const Node& node = decision.nodes[i];
    const Type of_node = context.TypeOf(node);
    const auto at = [&](std::size_t operand) { return As(of_node, values[node.of[operand]]); };
    Value value = kNoValue;
    switch (node.op) {
      case Op::kConstant:
        value = node.type == Type::kReal ? RealValue(std::bit_cast<double>(node.value))
                                         : context.Constant(node);
        break;
      case Op::kParameter:
        if (static_cast<std::size_t>(node.value) < parameters.size()) {
          if (const auto& given = parameters[static_cast<std::size_t>(node.value)])
            value = Integer(node.type, *given);
        }
        break;
      case Op::kSpecial:
        if (const std::optional<std::int64_t> special = context.Special(node.value))
          value = Integer(node.type, *special);
        break;
      case Op::kMemory:
        value = context.Element();
        break;
      case Op::kCounter:
        if (const Value by = context.Counted(i, of_node, at(1)))
          value = Apply(Op::kAdd, of_node, at(0), by);
        break;
      case Op::kChoice:
        value = at(context.second_way() ? 1 : 0);
        break;
      case Op::kSelect:
        value = As(Type::kBool, values[node.of[0]]).bits != 0 ? at(1) : at(2);
        break;
      case Op::kConvert:
        value = at(0);
        break;
      default:
        if (node.op >= Op::kEqual) {
          const Value left = values[node.of[0]];
          // Both sides were converted to the type that is compared.
          const Type type = decision.nodes[node.of[0]].type;
          const bool holds = Holds(node.op, Compare(type, left, As(type, values[node.of[1]])));
          value = Integer(Type::kBool, holds ? 1 : 0);
        } else {
          value = Apply(node.op, of_node, at(0), node.of.size() > 1 ? at(1) : kNoValue);
        }
    }
    if (!value) return false;
    values[i] = value.is_real() ? context.Rounded(value) : value;
  }
  return true;
}

}  // namespace assay::campaign
