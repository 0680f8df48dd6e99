#include "validator/emu/watch/overflow.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

namespace assay::emu {
namespace {

using ptx::Mod;
using ptx::Operation;
using Exact = __int128;

constexpr int kMaxDepth = 24;
constexpr std::uint32_t kMaxDistance = 1024;
constexpr int kMostLooks = 2000;
/// Definitions of a register that are looked at: where ways meet, each side has its own.
constexpr std::size_t kMostDefinitions = 4;

/// What CUDA calls the special registers that make indices.
struct SpecialName {
  ptx::SpecialRegister reg;
  std::string_view name;
};
constexpr SpecialName kSpecialNames[] = {{ptx::SpecialRegister::kTid, "threadIdx"},
                                         {ptx::SpecialRegister::kNtid, "blockDim"},
                                         {ptx::SpecialRegister::kCtaid, "blockIdx"},
                                         {ptx::SpecialRegister::kNctaid, "gridDim"}};
constexpr std::size_t kMaxInputs = 6;

std::string Print(Exact value) { return fmt::format("{}", static_cast<std::int64_t>(value)); }

class Follower {
 public:
  Follower(CoreWarp& warp, int lane) : warp_(warp), frame_(warp.frame), lane_(lane) {}

  std::optional<WrappedIndex> Take() { return std::move(found_); }

  /// The value of a source operand as it stood before `pc`, had no 32-bit operation wrapped.
  Exact Value(const DecodedOperand& operand, std::uint32_t pc, bool is_signed, int depth) {
    const Exact held = Held(operand, is_signed);
    if (depth >= kMaxDepth || operand.kind != DecodedOperand::Kind::kSlot || ++looks_ > kMostLooks)
      return held;
    for (const Decoded* const definition : Definitions(operand.slot, pc)) {
      const Exact exact = Result(*definition, held, operand.bits, is_signed, depth + 1);
      if (found_) return exact;
    }
    // The value of a loop's last round comes from further down.
    const Decoded* const around = DefinitionAhead(operand.slot, pc);
    if (around != nullptr) Result(*around, held, operand.bits, is_signed, depth + 1);
    return held;
  }

 private:
  const FunctionCode& Code() const { return warp_.device->program.functions[frame_->function]; }

  template <class T>
  T Lane(Slot slot) const {
    T value;
    std::memcpy(&value,
                frame_->slots + std::size_t{slot} * kSlotBytes +
                    static_cast<std::size_t>(lane_) * sizeof(T),
                sizeof value);
    return value;
  }

  Exact Held(const DecodedOperand& operand, bool is_signed) const {
    if (operand.kind != DecodedOperand::Kind::kSlot) return 0;
    if (operand.bits == 64) {
      const auto bits = Lane<std::uint64_t>(operand.slot);
      return is_signed ? Exact{static_cast<std::int64_t>(bits)} : Exact{bits};
    }
    if (operand.bits == 32) {
      const auto bits = Lane<std::uint32_t>(operand.slot);
      return is_signed ? Exact{static_cast<std::int32_t>(bits)} : Exact{bits};
    }
    return Lane<std::uint16_t>(operand.slot);
  }

  /// "blockIdx.x", or the argument that a parameter holds; empty for anything computed.
  std::string NameOf(const DecodedOperand& operand, const Decoded* definition) const {
    const FunctionCode& code = Code();
    const auto constant = [&](Slot slot) {
      return std::ranges::find(code.constants, slot, &ConstantSlot::slot);
    };
    if (const auto special = constant(operand.slot);
        special != code.constants.end() && special->kind == ConstantSlot::Kind::kSpecial) {
      const auto row = std::ranges::find(kSpecialNames, special->special, &SpecialName::reg);
      if (row == std::end(kSpecialNames)) return {};
      return fmt::format("{}.{}", row->name, "xyzw"[special->component % 4]);
    }
    if (definition == nullptr || definition->rules.shadow != ptx::Shadow::kLoad ||
        definition->operand_count != 2)
      return {};
    const DecodedOperand& address = definition->operands[1];
    const auto symbol = constant(address.slot);
    if (symbol == code.constants.end() || symbol->kind != ConstantSlot::Kind::kParamSymbol)
      return {};
    const std::uint64_t at = symbol->value + static_cast<std::uint64_t>(address.offset);
    const std::vector<Argument>& args = warp_.device->launch.launch->args;
    for (std::size_t i = 0; i < args.size(); ++i) {
      const std::size_t variable = code.function->returns.size() + i;
      if (variable < code.variables.size() && code.variables[variable].offset == at)
        return args[i].name;
    }
    return {};
  }

  /// Adds the named values that `operand` was computed from.
  void CollectInputs(const DecodedOperand& operand, std::uint32_t pc, int depth,
                     std::vector<std::string>& inputs) const {
    if (operand.kind != DecodedOperand::Kind::kSlot || depth >= kMaxDepth ||
        inputs.size() >= kMaxInputs)
      return;
    const Decoded* const definition = Definition(operand.slot, pc);
    if (const std::string name = NameOf(operand, definition); !name.empty()) {
      std::string input = fmt::format("{} = {}", name, Print(Held(operand, true)));
      if (std::ranges::find(inputs, input) == inputs.end()) inputs.push_back(std::move(input));
      return;
    }
    if (definition == nullptr || definition->rules.shadow == ptx::Shadow::kLoad) return;
    for (std::size_t i = definition->destinations; i < definition->operand_count; ++i)
      CollectInputs(definition->operands[i], warp_.PcOf(*definition), depth + 1, inputs);
  }

  static bool Defines(const Decoded& op, Slot slot) {
    for (std::size_t i = 0; i < op.destinations; ++i) {
      if (op.operands[i].kind == DecodedOperand::Kind::kSlot && op.operands[i].slot == slot)
        return true;
    }
    return false;
  }

  const Decoded* Definition(Slot slot, std::uint32_t pc) const {
    const std::vector<const Decoded*> definitions = Definitions(slot, pc, 1);
    return definitions.empty() ? nullptr : definitions.front();
  }

  /// Those that stand before `pc`, the nearest first.
  std::vector<const Decoded*> Definitions(Slot slot, std::uint32_t pc,
                                          std::size_t most = kMostDefinitions) const {
    std::vector<const Decoded*> definitions;
    const FunctionCode& code = Code();
    if (slot < code.constant_slots) return definitions;
    for (std::uint32_t distance = 0;
         pc > code.first_pc && distance < kMaxDistance && definitions.size() < most; ++distance) {
      if (Defines(warp_.At(--pc), slot)) definitions.push_back(&warp_.At(pc));
    }
    return definitions;
  }

  /// The value of another lane that still holds `held` in `operand`, followed there.
  Exact InAnyLane(const DecodedOperand& operand, std::uint32_t pc, Exact held, bool is_signed,
                  int depth) {
    const int own = lane_;
    Exact exact = held;
    for (lane_ = 0; lane_ < kWarpSize && !found_; ++lane_) {
      if (Held(operand, is_signed) == held) exact = Value(operand, pc, is_signed, depth);
    }
    lane_ = own;
    return exact;
  }

  /// What a load found: by the stores of the function that came before it and whose register still
  /// holds it; of a callee's parameter, by those of the caller.
  Exact Loaded(const Decoded& load, Exact held, int bits, bool is_signed, int depth) {
    Frame* const own = frame_;
    const ptx::Space space = load.source->space;
    std::uint32_t end = Code().end_pc;
    const bool parameter = IsParameter(space);
    if (parameter) {
      const std::uint32_t back = own->return_pc[static_cast<std::size_t>(lane_)];
      frame_ = CallerOf(*own, back);
      end = back;
    }
    Exact exact = held;
    for (std::uint32_t at = frame_ == nullptr ? 0 : Code().first_pc;
         frame_ != nullptr && at < end && !found_; ++at) {
      const Decoded& store = warp_.At(at);
      if (store.rules.shadow != ptx::Shadow::kStore ||
          (parameter ? !IsParameter(store.source->space) : store.source->space != space))
        continue;
      for (std::size_t i = 1; i < store.operand_count && !found_; ++i) {
        const DecodedOperand& data = store.operands[i];
        if (data.kind != DecodedOperand::Kind::kSlot || data.bits != bits) continue;
        exact = parameter ? Held(data, is_signed) == held ? Value(data, at, is_signed, depth) : held
                          : InAnyLane(data, at, held, is_signed, depth);
      }
    }
    frame_ = own;
    return exact;
  }

  static bool IsParameter(ptx::Space space) {
    return space == ptx::Space::kParam || space == ptx::Space::kParamEntry ||
           space == ptx::Space::kParamFunc;
  }

  /// The frame that called the one whose lane goes on at `back`, or null.
  Frame* CallerOf(const Frame& callee, std::uint32_t back) const {
    if (callee.depth == 0 || back >= warp_.device->program.function_of.size()) return nullptr;
    const std::uint32_t function = warp_.device->program.function_of[back];
    for (const std::unique_ptr<Frame>& frame : warp_.frames) {
      if (frame->depth + 1 == callee.depth && frame->function == function) return frame.get();
    }
    return nullptr;
  }

  /// The definition of `slot` that a later round of a loop around `pc` sees.
  const Decoded* DefinitionAhead(Slot slot, std::uint32_t pc) const {
    const FunctionCode& code = Code();
    if (slot < code.constant_slots) return nullptr;
    const Decoded* definition = nullptr;
    for (std::uint32_t at = pc; at < code.end_pc && at - pc < kMaxDistance; ++at) {
      const Decoded& op = warp_.At(at);
      const bool round = op.rules.effect == ptx::Effect::kBranch && op.target <= pc;
      if (round && definition != nullptr) return definition;  // Else of a loop further out.
      if (Defines(op, slot)) definition = &op;
    }
    return nullptr;
  }

  /// A sum that a loop adds to: its register holds what came of the last addition of `b`.
  static std::optional<Exact> BeforeLastRound(Exact held, Exact b) {
    constexpr Exact kLargestStride = Exact{1} << 28;
    if (b <= 0 || b > kLargestStride || held >= 0) return std::nullopt;
    const Exact before = held - b + (Exact{1} << 32);
    if (before > std::numeric_limits<std::int32_t>::max()) return std::nullopt;
    return before;
  }

  /// The exact result of `op`, or `held` where the operation is not one of index arithmetic.
  Exact Result(const Decoded& op, Exact held, int bits, bool is_signed, int depth) {
    const ptx::Instruction& in = *op.source;
    const std::uint32_t pc = warp_.PcOf(op);
    if (op.rules.shadow == ptx::Shadow::kLoad) return Loaded(op, held, bits, is_signed, depth);
    if (op.rules.shadow == ptx::Shadow::kShuffle && op.operand_count > op.destinations)
      return InAnyLane(op.operands[op.destinations], pc, held, is_signed, depth);
    if (op.destinations != 1 || op.operand_count < 2) return held;
    const DecodedOperand* const s = op.operands + 1;
    const auto source = [&](std::size_t i, bool sign) { return Value(s[i], pc, sign, depth); };
    const bool sign_of_type = in.type() == ptx::Type::kS32 || in.type() == ptx::Type::kS64;
    Exact exact = held;
    std::string text;
    switch (op.rules.operation) {
      case Operation::kCopy:
      case Operation::kChangeSpace:
        return op.operand_count == 2 && s[0].bits == bits ? source(0, is_signed) : held;
      case Operation::kConvert: {
        const ptx::Type from = in.type(1);
        if (s[0].bits == 64 && ptx::IsInteger(from)) {
          const bool narrows = bits == 32 || ptx::BitsOf(from) == 32;
          return narrows
                     ? Cut(s[0], pc, held, bits == 32 ? is_signed : from == ptx::Type::kS32, depth)
                     : held;
        }
        if (from == ptx::Type::kS32) return source(0, true);
        if (from == ptx::Type::kU32 || from == ptx::Type::kB32) return source(0, false);
        return held;
      }
      case Operation::kSelect:
      case Operation::kLeast:
      case Operation::kGreatest:
        for (std::size_t i = 0; i < 2 && i + 1 < op.operand_count; ++i) {
          if (s[i].bits == bits && Held(s[i], is_signed) == held) return source(i, is_signed);
        }
        return held;
      case Operation::kProduct:
      case Operation::kMultiplyAdd: {
        if (in.Has(Mod::kHi) || !ptx::IsInteger(in.type())) return held;
        const bool wide = in.Has(Mod::kWide);
        const bool sign = wide ? sign_of_type : is_signed;
        const Exact a = source(0, sign), b = source(1, sign);
        exact = a * b;
        text = fmt::format("{} * {}", Print(a), Print(b));
        if (op.rules.operation == Operation::kMultiplyAdd) {
          const Exact c = source(2, is_signed);
          exact += c;
          text += fmt::format(" + {}", Print(c));
        }
        break;
      }
      case Operation::kSum:
      case Operation::kDifference: {
        if (op.operand_count != 3 || !ptx::IsInteger(in.type()) || ptx::BitsOf(in.type()) < 32)
          return held;
        Exact a = source(0, is_signed), b = source(1, is_signed);
        const bool sum = op.rules.operation == Operation::kSum;
        exact = sum ? a + b : a - b;
        if (sum && bits == 32 && is_signed &&
            static_cast<std::uint32_t>(exact) != static_cast<std::uint32_t>(held)) {
          // An operand that the loop has overwritten with the sum itself.
          if (Held(s[0], true) != held) std::swap(a, b);
          if (const auto before = BeforeLastRound(held, b)) {
            a = *before;
            exact = a + b;
          }
        }
        text = fmt::format("{} {} {}", Print(a), sum ? '+' : '-', Print(b));
        break;
      }
      case Operation::kShiftRight:
      case Operation::kQuotient:
        // Of signed numbers alone: whoever shifts unsigned ones may have meant them to wrap (hashes).
        if (bits == 64 && op.rules.operation == Operation::kShiftRight)
          return Extended(s[0], pc, Held(s[1], false), held, sign_of_type, depth);
        if (sign_of_type && s[0].bits == bits) source(0, true);
        return held;
      case Operation::kShiftLeft: {
        const Exact a = source(0, is_signed);
        const Exact by = Held(s[1], false);
        if (by < 0 || by >= 32) return held;
        exact = a * (Exact{1} << static_cast<int>(by));
        text = fmt::format("{} << {}", Print(a), Print(by));
        break;
      }
      default:
        return held;
    }
    if (found_ || bits != 32) return exact;
    const Exact low = is_signed ? Exact{std::numeric_limits<std::int32_t>::min()} : Exact{0};
    const Exact high = is_signed ? Exact{std::numeric_limits<std::int32_t>::max()}
                                 : Exact{std::numeric_limits<std::uint32_t>::max()};
    if (exact >= low && exact <= high) return exact;
    // Registers may have been overwritten since: only what explains the value that is there counts.
    if (static_cast<std::uint32_t>(exact) != static_cast<std::uint32_t>(held)) return held;
    // Sums of unsigned values that step back (i - 1 written as i + 0xffffffff) wrap on purpose.
    const bool summed =
        op.rules.operation == Operation::kSum || op.rules.operation == Operation::kDifference;
    if (summed && !is_signed) return held;
    std::vector<std::string> inputs;
    for (std::size_t i = 0; i + 1 < op.operand_count; ++i) CollectInputs(s[i], pc, depth, inputs);
    found_ = WrappedIndex{.expression = fmt::format("{} = {}", text, Print(exact)),
                          .wrapped = static_cast<std::int64_t>(held),
                          .pc = pc,
                          .cut = false,
                          .inputs = fmt::format("{}", fmt::join(inputs, ", "))};
    return exact;
  }

  /// Of a number of 64 bits of which 32 are kept, and `kept` came of them: what was lost.
  Exact Cut(const DecodedOperand& wide, std::uint32_t pc, Exact kept, bool is_signed, int depth) {
    const Exact whole = Value(wide, pc, true, depth);
    if (found_) return whole;
    const Exact low = is_signed ? Exact{static_cast<std::int32_t>(whole)}
                                : Exact{static_cast<std::uint32_t>(whole)};
    // A negative number that is taken for unsigned has lost nothing.
    const bool fits = whole >= std::numeric_limits<std::int32_t>::min() &&
                      whole <= (is_signed ? Exact{std::numeric_limits<std::int32_t>::max()}
                                          : Exact{std::numeric_limits<std::uint32_t>::max()});
    if (fits || low != kept) return kept;
    std::vector<std::string> inputs;
    CollectInputs(wide, pc, depth, inputs);
    found_ = WrappedIndex{.expression = Print(whole),
                          .wrapped = static_cast<std::int64_t>(low),
                          .pc = pc,
                          .cut = true,
                          .inputs = fmt::format("{}", fmt::join(inputs, ", "))};
    return whole;
  }

  /// (wide << 32) >> `by`: the low half, its sign spread upwards, times a power of two.
  Exact Extended(const DecodedOperand& shifted, std::uint32_t pc, Exact by, Exact held,
                 bool is_signed, int depth) {
    const Decoded* const left = Definition(shifted.slot, pc);
    if (left == nullptr || left->rules.operation != Operation::kShiftLeft || by < 0 || by > 32 ||
        left->operand_count != 3 || Held(left->operands[2], false) != 32)
      return held;
    const int scale = 32 - static_cast<int>(by);
    if ((held & ((Exact{1} << scale) - 1)) != 0) return held;
    return Cut(left->operands[1], warp_.PcOf(*left), held >> scale, is_signed, depth);
  }

  CoreWarp& warp_;
  Frame* frame_;  ///< Where it is followed: the frame that runs, or a caller's.
  int lane_;
  int looks_ = 0;
  std::optional<WrappedIndex> found_;
};

}  // namespace

std::optional<WrappedIndex> FindWrappedIndex(CoreWarp& warp, const Decoded& op, int lane) {
  Follower follower(warp, lane);
  for (std::size_t i = 0; i < op.operand_count; ++i) {
    // The address is the operand that PTX writes in brackets.
    if (i < op.source->operands.size() &&
        op.source->operands[i].kind != ptx::Operand::Kind::kAddress && op.destinations == 0)
      continue;
    if (i < op.destinations) continue;
    follower.Value(op.operands[i], warp.PcOf(op), true, 0);
    break;
  }
  return follower.Take();
}

}  // namespace assay::emu
