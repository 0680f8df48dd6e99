#include "validator/ptx/facts/slice.h"

#include <algorithm>
#include <array>
#include <bit>

#include "validator/ptx/facts/flow.h"
#include "validator/ptx/isa.h"

namespace assay::facts {

using ptx::Instruction;
using ptx::Opcode;
using ptx::Operand;
using Op = Node::Op;
using Type = Node::Type;

namespace {

constexpr std::size_t kMostNodes = 64;
/// Instructions looked at for one module, in search of definitions.
constexpr std::uint64_t kMostWork = 4'000'000;
/// Of these for one decision; and as how many each register counts that is looked up.
constexpr std::uint64_t kMostOfOne = 400'000;
constexpr std::uint64_t kWorkOfARegister = 16;

/// Twice as wide, for mul.wide and mad.wide.
Type Wider(Type type) {
  switch (type) {
    case Type::kU16:
      return Type::kU32;
    case Type::kS16:
      return Type::kS32;
    case Type::kU32:
      return Type::kU64;
    case Type::kS32:
      return Type::kS64;
    default:
      return type;
  }
}

std::optional<Op> OpOf(const Instruction& in) {
  switch (in.opcode) {
    case Opcode::kAdd:
      return Op::kAdd;
    case Opcode::kSub:
      return Op::kSubtract;
    case Opcode::kMul:
      return in.Has(ptx::Mod::kHi) ? Op::kMultiplyHigh : Op::kMultiply;
    case Opcode::kMul24:
      // As long as its factors fit; whether they do is a decision of its own.
      return in.Has(ptx::Mod::kHi) ? std::nullopt : std::optional(Op::kMultiply);
    case Opcode::kDiv:
      return Op::kDivide;
    case Opcode::kRem:
      return Op::kRemainder;
    case Opcode::kAnd:
      return Op::kAnd;
    case Opcode::kOr:
      return Op::kOr;
    case Opcode::kXor:
      return Op::kXor;
    case Opcode::kNot:
      return Op::kNot;
    case Opcode::kNeg:
      return Op::kNegate;
    case Opcode::kAbs:
      return Op::kAbsolute;
    case Opcode::kSqrt:
      return Op::kSquareRoot;
    case Opcode::kShl:
      return Op::kShiftLeft;
    case Opcode::kShr:
      return Op::kShiftRight;
    case Opcode::kMin:
      return Op::kMin;
    case Opcode::kMax:
      return Op::kMax;
    default:
      return std::nullopt;
  }
}

struct Comparison {
  ptx::Mod mod;
  Op op;
};
constexpr Comparison kComparisons[] = {
    {ptx::Mod::kEq, Op::kEqual},    {ptx::Mod::kNe, Op::kNotEqual},
    {ptx::Mod::kLt, Op::kLess},     {ptx::Mod::kLe, Op::kLessEqual},
    {ptx::Mod::kGt, Op::kGreater},  {ptx::Mod::kGe, Op::kGreaterEqual},
    {ptx::Mod::kEqu, Op::kEqual},   {ptx::Mod::kNeu, Op::kNotEqual},
    {ptx::Mod::kLtu, Op::kLess},    {ptx::Mod::kLeu, Op::kLessEqual},
    {ptx::Mod::kGtu, Op::kGreater}, {ptx::Mod::kGeu, Op::kGreaterEqual},
    {ptx::Mod::kLo, Op::kLess},     {ptx::Mod::kLs, Op::kLessEqual},
    {ptx::Mod::kHi, Op::kGreater},  {ptx::Mod::kHs, Op::kGreaterEqual},
};
std::optional<Op> ComparisonOf(const Instruction& in) {
  for (const Comparison& row : kComparisons) {
    if (in.Has(row.mod)) return row.op;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Node::Type> NodeTypeOf(ptx::Type type) {
  using P = ptx::Type;
  switch (type) {
    case P::kU8:
    case P::kB8:
    case P::kU16:
    case P::kB16:
      return Type::kU16;
    case P::kS8:
    case P::kS16:
      return Type::kS16;
    case P::kU32:
    case P::kB32:
      return Type::kU32;
    case P::kS32:
      return Type::kS32;
    case P::kU64:
    case P::kB64:
      return Type::kU64;
    case P::kS64:
      return Type::kS64;
    case P::kF16:
    case P::kBF16:
    case P::kF32:
    case P::kF64:
      return Type::kReal;
    case P::kPred:
      return Type::kBool;
    default:
      return std::nullopt;
  }
}

BackwardFlow::BackwardFlow(const ptx::Function& function)
    : function_(function), before_(function.body.size()), defines_(function.registers.size()) {
  const auto successors = ptx::ControlFlow(function);
  for (std::uint32_t i = 0; i < successors.size(); ++i) {
    for (const std::uint32_t next : successors[i]) {
      before_[next].push_back(i);
      if (next <= i) loops_[next] = i;
    }
  }
  for (std::uint32_t i = 0; i < function.body.size(); ++i) {
    const Instruction& in = function.body[i];
    const auto rules = ptx::AssignRules(ptx::FormOf(in), in);
    for (std::size_t o = 0; o < in.operands.size(); ++o) {
      const bool written =
          in.opcode == Opcode::kCall ? o == 0 : o < rules.size() && rules[o].written;
      if (written) Define(in.operands[o], i);
    }
  }
}

std::vector<std::uint32_t> BackwardFlow::Reaching(ptx::RegisterIndex reg, std::uint32_t at,
                                                  std::uint64_t& work) const {
  const std::vector<std::uint32_t>& all = defines_[reg];
  if (all.size() <= 1) return all;
  std::vector<bool> seen(before_.size(), false);
  std::vector<std::uint32_t> open = before_[at];
  std::vector<std::uint32_t> found;
  while (!open.empty()) {
    const std::uint32_t node = open.back();
    open.pop_back();
    if (seen[node]) continue;
    seen[node] = true;
    if (++work > kMostWork) return {};
    const bool defines = std::ranges::binary_search(all, node);
    if (defines) found.push_back(node);
    if (!defines || function_.body[node].guard.present)
      open.insert(open.end(), before_[node].begin(), before_[node].end());
  }
  std::ranges::sort(found);
  return found;
}

std::uint32_t BackwardFlow::LoopOf(std::uint32_t at) const {
  for (auto loop = loops_.upper_bound(at); loop != loops_.begin();) {
    --loop;
    if (loop->second >= at) return loop->first + 1;
  }
  return 0;
}

void BackwardFlow::Define(const Operand& operand, std::uint32_t at) {
  if (operand.kind == Operand::Kind::kRegister &&
      (defines_[operand.reg].empty() || defines_[operand.reg].back() != at))
    defines_[operand.reg].push_back(at);
  for (const Operand& element : operand.elements) Define(element, at);
}

Slice::Number Slice::Of(const Operand& operand, Type type, std::uint32_t at) {
  switch (operand.kind) {
    case Operand::Kind::kRegister: {
      const Number value = Register(operand.reg, at);
      if (!value || !operand.negated) return value;
      return Add({Op::kNot, Type::kBool, 0, {*value}});
    }
    case Operand::Kind::kImmediate:
      return Immediate(operand, type);
    case Operand::Kind::kSpecial:
      return Special(operand);
    default:
      return std::nullopt;
  }
}

Slice::Number Slice::Compute(Op op, Type type, std::vector<std::uint32_t> of) {
  return Add({op, type, 0, std::move(of)});
}

void Slice::Finish(std::uint32_t left, std::uint32_t right, Decision& decision) const {
  std::vector<bool> wanted(nodes_.size(), false);
  wanted[left] = wanted[right] = true;
  for (std::size_t i = nodes_.size(); i-- > 0;) {
    for (const std::uint32_t of : nodes_[i].of) wanted[of] = wanted[of] || wanted[i];
  }
  std::vector<std::uint32_t> moved(nodes_.size(), 0);
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (!wanted[i]) continue;
    moved[i] = static_cast<std::uint32_t>(decision.nodes.size());
    Node node = nodes_[i];
    for (std::uint32_t& of : node.of) of = moved[of];
    decision.nodes.push_back(std::move(node));
  }
  decision.left = moved[left];
  decision.right = moved[right];
}

Slice::Number Slice::Add(Node node) {
  if (nodes_.size() >= kMostNodes) return std::nullopt;
  const auto [known, fresh] = numbers_.try_emplace(node, static_cast<std::uint32_t>(nodes_.size()));
  if (fresh) nodes_.push_back(std::move(node));
  return known->second;
}

Slice::Number Slice::Immediate(const Operand& operand, Type type) {
  if (operand.immediate_type == ptx::Type::kNone) {
    if (type != Type::kReal) return Constant(static_cast<std::int64_t>(operand.bits), type);
    return std::nullopt;
  }
  const double real =
      operand.immediate_type == ptx::Type::kF32
          ? static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(operand.bits)))
          : std::bit_cast<double>(operand.bits);
  return Constant(std::bit_cast<std::int64_t>(real), Type::kReal);
}

Slice::Number Slice::Special(const Operand& operand) {
  using S = ptx::SpecialRegister;
  constexpr std::array kKnown = {S::kTid, S::kNtid, S::kCtaid, S::kNctaid};
  if (operand.special == S::kLaneid) return Add({Op::kSpecial, Type::kU32, 16, {}});
  const auto found = std::ranges::find(kKnown, operand.special);
  if (found == kKnown.end() || operand.component > 2) return std::nullopt;
  return Add({Op::kSpecial, Type::kU32, (found - kKnown.begin()) * 4 + operand.component, {}});
}

Slice::Number Slice::Register(ptx::RegisterIndex reg, std::uint32_t at) {
  work_ += kWorkOfARegister;
  if (work_ > kMostWork || work_ - begun_ > kMostOfOne) return std::nullopt;
  const std::vector<std::uint32_t> definitions = flow_.Reaching(reg, at, work_);
  if (definitions.empty() || depth_ > kMostNodes) return std::nullopt;
  const auto key = std::pair(reg, definitions);
  for (const auto* const known : {&known_.front(), &known_.back()}) {
    if (const auto found = known->find(key); found != known->end()) return found->second;
  }
  ++depth_;
  const Number value = definitions.size() == 1 && !function_.body[definitions[0]].guard.present
                           ? Result(reg, definitions[0])
                           : Met(reg, definitions);
  --depth_;
  known_.back()[key] = value;
  return value;
}

Slice::Number Slice::Met(ptx::RegisterIndex reg, const std::vector<std::uint32_t>& definitions) {
  const auto key = std::pair(reg, definitions);
  if (const auto open = meetings_.find(key); open != meetings_.end()) return open->second;
  if (definitions.size() > 6) return std::nullopt;
  // A mark that nothing else is equal to, and that no finished value contains.
  const Number mark = Add({Op::kSpecial, Type::kU32, 1'000 + next_mark_++, {}});
  if (!mark) return std::nullopt;
  meetings_[key] = *mark;
  // What is found out within a meeting may hang on its mark.
  known_.emplace_back();
  std::vector<std::uint32_t> ways;
  Number step;
  std::uint32_t loop = 0;
  Op direction = Op::kAdd;
  Type type = Type::kS64;
  for (const std::uint32_t definition : definitions) {
    const Number way = Result(reg, definition);
    if (!way || *way == *mark) continue;
    const Node& node = nodes_[*way];
    const bool counts = (node.op == Op::kAdd || node.op == Op::kSubtract) && node.of[0] == *mark &&
                        !Contains(node.of[1], *mark);
    const bool counts_too =
        node.op == Op::kAdd && node.of[1] == *mark && !Contains(node.of[0], *mark);
    if (counts || counts_too) {
      step = node.of[counts ? 1 : 0];
      direction = node.op;
      type = node.type;
      loop = flow_.LoopOf(definition);
    } else if (!Contains(*way, *mark)) {
      ways.push_back(*way);
    }
  }
  meetings_.erase(key);
  known_.pop_back();
  if (ways.empty()) return std::nullopt;
  Number value = ways[0];
  const auto other = std::ranges::find_if(ways, [&](std::uint32_t way) { return way != ways[0]; });
  if (other != ways.end()) value = Add({Op::kChoice, nodes_[*other].type, 0, {ways[0], *other}});
  if (!value || !step) return value;
  if (direction == Op::kSubtract) step = Add({Op::kNegate, type, 0, {*step}});
  if (!step) return std::nullopt;
  return Add({Op::kCounter, type, loop, {*value, *step}});
}

bool Slice::Contains(std::uint32_t node, std::uint32_t part) const {
  std::vector<bool> in(node + 1, false);
  for (std::uint32_t i = part; i <= node; ++i) {
    in[i] =
        i == part || std::ranges::any_of(nodes_[i].of, [&](std::uint32_t of) { return in[of]; });
  }
  return part <= node && in[node];
}

Slice::Number Slice::Result(ptx::RegisterIndex reg, std::uint32_t at) {
  const Instruction& in = function_.body[at];
  if (in.operands.empty() || in.operands[0].kind != Operand::Kind::kRegister ||
      in.operands[0].reg != reg)
    return in.opcode == Opcode::kLd ? Loaded(in, reg, at) : std::nullopt;
  const std::optional<Type> type = NodeTypeOf(in.type());
  if (!type) return std::nullopt;
  switch (in.opcode) {
    case Opcode::kLd:
      return Loaded(in, reg, at);
    case Opcode::kAtom:
      return Ticket(in, *type, at);
    case Opcode::kMov:
      return Moved(in, *type, at);
    case Opcode::kCvta:
      return Of(in.operands[1], *type, at);
    case Opcode::kCvt:
      return Converted(in, *type, at);
    case Opcode::kSelp: {
      const Number first = Of(in.operands[1], *type, at);
      const Number second = Of(in.operands[2], *type, at);
      const Number which = Of(in.operands[3], Type::kBool, at);
      if (!first || !second || !which) return std::nullopt;
      return Compute(Op::kSelect, *type, {*which, *first, *second});
    }
    case Opcode::kSetp:
      return Compared(in, at);
    case Opcode::kMad:
    case Opcode::kMad24:
    case Opcode::kFma:
      return Fused(in, *type, at);
    default:
      return Computed(in, *type, at);
  }
}

Slice::Number Slice::Computed(const Instruction& in, Type type, std::uint32_t at) {
  if (in.opcode == Opcode::kRcp && in.operands.size() == 2) {
    const Number one = Constant(std::bit_cast<std::int64_t>(1.0), Type::kReal);
    const Number of = Of(in.operands[1], type, at);
    return one && of ? Compute(Op::kDivide, type, {*one, *of}) : std::nullopt;
  }
  const std::optional<Op> op = OpOf(in);
  if (!op) return std::nullopt;
  const bool shift = *op == Op::kShiftLeft || *op == Op::kShiftRight;
  std::vector<std::uint32_t> of;
  for (std::size_t i = 1; i < in.operands.size() && i < 3; ++i) {
    const Number value = Of(in.operands[i], shift && i == 2 ? Type::kU32 : type, at);
    if (!value) return std::nullopt;
    of.push_back(*value);
  }
  const bool unary =
      *op == Op::kNot || *op == Op::kNegate || *op == Op::kAbsolute || *op == Op::kSquareRoot;
  if (of.size() != (unary ? 1u : 2u)) return std::nullopt;
  if (in.Has(ptx::Mod::kWide)) return Wide(of[0], of[1], type);
  return Compute(*op, type, std::move(of));
}

Slice::Number Slice::Wide(std::uint32_t left, std::uint32_t right, Type type) {
  const Number a = Compute(Op::kConvert, type, {left});
  const Number b = Compute(Op::kConvert, type, {right});
  if (!a || !b) return std::nullopt;
  return Compute(Op::kMultiply, Wider(type), {*a, *b});
}

Slice::Number Slice::Fused(const Instruction& in, Type type, std::uint32_t at) {
  if (in.operands.size() < 4 || in.Has(ptx::Mod::kHi)) return std::nullopt;
  const Type sum = in.Has(ptx::Mod::kWide) ? Wider(type) : type;
  const Number a = Of(in.operands[1], type, at);
  const Number b = Of(in.operands[2], type, at);
  const Number c = Of(in.operands[3], sum, at);
  if (!a || !b || !c) return std::nullopt;
  const Number product = sum != type ? Wide(*a, *b, type) : Compute(Op::kMultiply, type, {*a, *b});
  if (!product) return std::nullopt;
  return Compute(Op::kAdd, sum, {*product, *c});
}

Slice::Number Slice::Compared(const Instruction& in, std::uint32_t at) {
  const std::optional<Op> op = ComparisonOf(in);
  const std::optional<Type> type = NodeTypeOf(in.type(in.types.size() - 1));
  if (!op || !type) return std::nullopt;
  const std::size_t first = in.operands[1].paired ? 2 : 1;
  if (in.operands.size() != first + 2) return std::nullopt;
  const Number a = Of(in.operands[first], *type, at);
  const Number b = Of(in.operands[first + 1], *type, at);
  if (!a || !b) return std::nullopt;
  const Number left = Compute(Op::kConvert, *type, {*a});
  const Number right = Compute(Op::kConvert, *type, {*b});
  if (!left || !right) return std::nullopt;
  return Compute(*op, Type::kBool, {*left, *right});
}

Slice::Number Slice::Moved(const Instruction& in, Type type, std::uint32_t at) {
  const Number value = Of(in.operands[1], type, at);
  if (!value || nodes_[*value].op == Op::kMemory) return value;
  const bool real = nodes_[*value].type == Type::kReal;
  return real == (type == Type::kReal) || nodes_[*value].op == Op::kConstant ? value : std::nullopt;
}

Slice::Number Slice::Converted(const Instruction& in, Type to, std::uint32_t at) {
  const std::optional<Type> from = NodeTypeOf(in.type(1));
  if (!from) return std::nullopt;
  const Number value = Of(in.operands[1], *from, at);
  if (!value || nodes_[*value].op == Op::kMemory) return value;
  const Number read = *from == Type::kReal ? value : Compute(Op::kConvert, *from, {*value});
  return read ? Compute(Op::kConvert, to, {*read}) : std::nullopt;
}

// Blocks that count themselves draw the numbers that they have, in some order: the last one is drawn where the last
// block is.
Slice::Number Slice::Ticket(const Instruction& in, Type type, std::uint32_t at) {
  const bool counts = in.Has(ptx::Mod::kAdd) || in.Has(ptx::Mod::kInc);
  if (!counts || type == Type::kReal || in.operands.size() < 3 ||
      (in.space != ptx::Space::kGlobal && in.space != ptx::Space::kGeneric))
    return std::nullopt;
  const Number step = in.Has(ptx::Mod::kInc) ? Constant(1, type) : Of(in.operands[2], type, at);
  if (!step || nodes_[*step].op != Op::kConstant || nodes_[*step].value <= 0) return std::nullopt;
  constexpr std::int64_t kBlock = 8, kBlocks = 12;
  const auto special = [&](std::int64_t what) { return Add({Op::kSpecial, Type::kU32, what, {}}); };
  Number number = special(kBlock + 2);
  for (const std::int64_t axis : {1, 0}) {
    const Number blocks = special(kBlocks + axis), own = special(kBlock + axis);
    if (!number || !blocks || !own) return std::nullopt;
    const Number before = Compute(Op::kMultiply, type, {*number, *blocks});
    number = before ? Compute(Op::kAdd, type, {*before, *own}) : std::nullopt;
  }
  return number ? Compute(Op::kMultiply, type, {*number, *step}) : std::nullopt;
}

// What one place of the text stores and another loads, at an address that both name: how a thread hands on to its
// block what it alone has drawn.
Slice::Number Slice::HandedOn(const Instruction& in, ptx::RegisterIndex reg) {
  const auto is_place = [](const Operand& address) {
    return address.kind == Operand::Kind::kAddress && address.has_symbol &&
           !address.has_base_register;
  };
  const auto of = [](const Operand& list, std::size_t i) -> const Operand* {
    if (list.elements.empty()) return i == 0 ? &list : nullptr;
    return i < list.elements.size() ? &list.elements[i] : nullptr;
  };
  const auto is_wanted = [&](const Operand* operand) {
    return operand != nullptr && operand->kind == Operand::Kind::kRegister && operand->reg == reg;
  };
  const Operand& address = in.operands[1];
  const auto bytes_of = [](const Instruction& access) {
    return static_cast<std::uint64_t>(ptx::BitsOf(access.type())) / 8;
  };
  const std::uint64_t size = bytes_of(in);
  std::size_t element = 0;
  while (element < in.vector_width && !is_wanted(of(in.operands[0], element))) ++element;
  if (!is_place(address) || element == in.vector_width || size == 0) return std::nullopt;
  const std::uint64_t wanted = static_cast<std::uint64_t>(address.offset) + element * size;
  const Operand* stored = nullptr;
  std::uint32_t where = 0;
  std::optional<Type> type;
  for (std::uint32_t i = 0; i < function_.body.size(); ++i) {
    const Instruction& st = function_.body[i];
    if (st.opcode != Opcode::kSt || st.space != ptx::Space::kShared || !is_place(st.operands[0]) ||
        st.operands[0].symbol != address.symbol)
      continue;
    const std::uint64_t behind = wanted - static_cast<std::uint64_t>(st.operands[0].offset);
    if (bytes_of(st) != size || behind >= size * st.vector_width || behind % size != 0) continue;
    if (stored != nullptr) return std::nullopt;
    stored = of(st.operands[1], behind / size);
    if (stored == nullptr) return std::nullopt;
    where = i;
    type = NodeTypeOf(st.type());
  }
  return stored != nullptr && type ? Of(*stored, *type, where) : std::nullopt;
}

Slice::Number Slice::Loaded(const Instruction& in, ptx::RegisterIndex reg, std::uint32_t) {
  const Operand& address = in.operands[1];
  if (in.space == ptx::Space::kShared) return HandedOn(in, reg);
  if (in.space == ptx::Space::kParam || in.space == ptx::Space::kParamEntry) {
    const std::optional<Type> type = NodeTypeOf(in.type());
    if (!type || !address.has_symbol || address.has_base_register || in.vector_width != 1 ||
        address.symbol.scope != ptx::SymbolRef::Scope::kFunction || address.offset != 0)
      return std::nullopt;
    const ptx::Variable& variable = function_.variables[address.symbol.index];
    const auto parameter = std::ranges::find(function_.params, variable.name, &ptx::Variable::name);
    if (parameter == function_.params.end()) return std::nullopt;
    return Add({Op::kParameter, *type, parameter - function_.params.begin(), {}});
  }
  if (in.space != ptx::Space::kGlobal && in.space != ptx::Space::kGeneric) return std::nullopt;
  const OriginSet origins = origins_.Of(number_, address);
  std::optional<std::int64_t> buffer;
  for (const Origin& origin : origins.origins()) {
    const Object& object = origins_.object(origin.object);
    if (origin.derived || object.kind != Object::Kind::kEntryParameter ||
        object.function != number_)
      continue;
    const bool is_pointer = function_.params[object.index].is_pointer;
    if (buffer && !is_pointer) continue;
    if (!buffer || is_pointer) buffer = object.index;
  }
  if (origins.everything() || !buffer) return std::nullopt;
  return Add({Op::kMemory, Type::kReal, *buffer, {}});
}

}  // namespace assay::facts
