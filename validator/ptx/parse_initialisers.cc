// Initialisers of variables (5.4.4): numbers, addresses, nested braces.
#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "validator/ptx/parser.h"
#include "validator/ptx/parser_impl.h"

namespace assay::ptx {
namespace {

bool IsFloat(Type type) { return type == Type::kF32 || type == Type::kF64; }

}  // namespace

Status Parser::ParseInitialiser(Variable& variable, const VariableHead& head,
                                Dimensions& dimensions) {
  InitialiserState state{.variable = &variable, .open = dimensions.open};
  // strides[i]: elements that one item at brace level i covers.
  state.strides.assign(dimensions.counts.size(), 1);
  for (std::size_t i = dimensions.counts.size(); i-- > 1;) {
    state.strides[i - 1] = state.strides[i] * dimensions.counts[i];
  }
  if (!dimensions.open) {
    state.elements = variable.bytes / (static_cast<std::uint64_t>(BitsOf(head.type)) / 8);
  }
  if (!current_.Is('{')) {
    if (!dimensions.counts.empty())
      return Expected("'{'", "an array's initialiser stands in braces");
    return ParseInitialiserValue(state, 0);
  }
  if (dimensions.counts.empty()) {
    Advance();  // A scalar in braces.
    ASSAY_TRY_VOID(ParseInitialiserValue(state, 0));
    return Expect('}');
  }
  ASSAY_TRY_VOID(ParseInitialiserLevel(state, 0, 0));
  if (dimensions.open) dimensions.counts[0] = state.outer_count;
  return {};
}

Status Parser::ParseInitialiserLevel(InitialiserState& state, std::size_t level,
                                     std::uint64_t base) {
  ASSAY_TRY_VOID(Expect('{'));
  const std::uint64_t stride = state.strides[level];
  // One level holds the product of its own count and its stride; an open outermost level has no
  // bound but the byte limit.
  const std::uint64_t capacity = level == 0 ? state.elements : state.strides[level - 1];
  const bool unbounded = level == 0 && state.open;
  const bool flat = !current_.Is('{');
  std::uint64_t used = 0;  // Elements.
  while (!current_.Is('}')) {
    const Token at = current_;
    const std::uint64_t step = flat ? 1 : stride;
    if (!unbounded && (used >= capacity || capacity - used < step)) {
      return Error_(at, "more values than the array has room for");
    }
    if (current_.Is('{')) {
      if (flat || level + 1 >= state.strides.size()) {
        return Error_(at, "braces where the array has no dimension for them");
      }
      ASSAY_TRY_VOID(ParseInitialiserLevel(state, level + 1, base + used));
    } else if (!flat) {
      return Expected("'{'");
    } else {
      ASSAY_TRY_VOID(ParseInitialiserValue(state, base + used));
    }
    used += step;
    if (!Accept(',')) break;
  }
  if (level == 0) state.outer_count = stride == 0 ? 0 : (used + stride - 1) / stride;
  return Expect('}');
}

Status Parser::Reserve(Variable& variable, std::uint64_t end, const Token& at) {
  if (variable.initialiser.size() >= end) return {};
  initialiser_bytes_ += end - variable.initialiser.size();
  const std::uint64_t limit =
      kLimits.initialiser_bytes_of_small_text + kLimits.initialiser_bytes_per_byte * text_.size();
  if (initialiser_bytes_ > limit) {
    return Error_(at, fmt::format("more than {} bytes of initialisers in so short a text", limit),
                  {}, ErrorKind::kLimit);
  }
  variable.initialiser.resize(end);
  return {};
}

Status Parser::StoreConstant(Variable& variable, std::uint64_t offset, const Constant& constant,
                             const Token& at) {
  const std::uint64_t bytes = static_cast<std::uint64_t>(BitsOf(variable.type)) / 8;
  std::uint64_t bits = constant.bits;
  if (constant.type == Type::kNone) {
    const auto value = static_cast<double>(static_cast<std::int64_t>(bits));
    if (variable.type == Type::kF32) bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
    if (variable.type == Type::kF64) bits = std::bit_cast<std::uint64_t>(value);
  } else if (IsFloat(variable.type) && constant.type != variable.type) {
    if (variable.type == Type::kF32) {
      // A NaN keeps no payload and an overflow becomes infinity: what a conversion to f32 does.
      bits = std::bit_cast<std::uint32_t>(static_cast<float>(std::bit_cast<double>(bits)));
    } else {
      const auto narrow = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
      bits = std::bit_cast<std::uint64_t>(static_cast<double>(narrow));
    }
  } else if (!IsFloat(variable.type) && BitsOf(constant.type) != BitsOf(variable.type)) {
    return Error_(
        at, fmt::format("a float literal cannot initialise a .{} variable", Name(variable.type)),
        "give the bits as an integer");
  }
  ASSAY_TRY_VOID(Reserve(variable, offset + bytes, at));
  const std::uint64_t sign =
      constant.type == Type::kNone && static_cast<std::int64_t>(bits) < 0 ? ~std::uint64_t{0} : 0;
  const std::uint64_t words[2] = {bits, sign};
  std::memcpy(variable.initialiser.data() + offset, words, bytes);
  return {};
}

Status Parser::ParseInitialiserValue(InitialiserState& state, std::uint64_t index) {
  Variable& variable = *state.variable;
  const std::uint64_t bytes = static_cast<std::uint64_t>(BitsOf(variable.type)) / 8;
  if (index > kLimits.variable_bytes) {
    return Error_(current_, "an initialiser above the size limit", {}, ErrorKind::kLimit);
  }
  const std::uint64_t offset = index * bytes;
  if (current_.kind == Token::Kind::kIdentifier && current_.text != "WARP_SZ") {
    return ParseAddressValue(variable, offset, std::nullopt);
  }
  const Token at = current_;
  ASSAY_TRY(const Constant constant, ParseConstant());
  if (constant.type == Type::kNone && Accept('(')) {
    ASSAY_TRY_VOID(ParseAddressValue(variable, offset, constant.bits));
    return Expect(')');
  }
  return StoreConstant(variable, offset, constant, at);
}

Status Parser::ParseAddressValue(Variable& variable, std::uint64_t offset,
                                 std::optional<std::uint64_t> mask) {
  Relocation relocation{.offset = offset, .generic = false};
  relocation.bytes = static_cast<std::uint8_t>(BitsOf(variable.type) / 8);
  const Token at = current_;
  ASSAY_TRY(Token name, ExpectIdentifier("the name of a variable or function"));
  if (name.text == "generic" && Accept('(')) {
    relocation.generic = true;
    ASSAY_TRY(name, ExpectIdentifier("the name of a variable"));
    ASSAY_TRY_VOID(Expect(')'));
  }
  if (current_.Is('+') || current_.Is('-')) {
    ASSAY_TRY(relocation.addend, ParseInteger());
  }
  if (mask) {
    const int shift = std::countr_zero(*mask);
    if (relocation.bytes != 1 || shift % 8 != 0 || *mask >> (shift % 64) != 0xff) {
      return Error_(at, "a mask selects one byte of an address, for a .b8 variable",
                    "write 0xFF(name), 0xFF00(name) ... for successive bytes");
    }
    relocation.first_byte = static_cast<std::uint8_t>(shift / 8);
  } else if (relocation.bytes != 4 && relocation.bytes != 8) {
    return Error_(at, fmt::format("a .{} variable cannot hold an address", Name(variable.type)));
  }
  ASSAY_TRY_VOID(Reserve(variable, offset + relocation.bytes, at));
  // The bytes of one address, given one by one, become one relocation.
  if (mask && !variable.relocations.empty() && !pending_relocations_.empty()) {
    Relocation& last = variable.relocations.back();
    if (last.offset + last.bytes == offset &&
        last.first_byte + last.bytes == relocation.first_byte && last.addend == relocation.addend &&
        last.generic == relocation.generic && pending_relocations_.back().name.text == name.text) {
      ++last.bytes;
      return {};
    }
  }
  pending_relocations_.push_back(
      {.variable = 0,
       .relocation = static_cast<std::uint32_t>(variable.relocations.size()),
       .name = name});
  variable.relocations.push_back(relocation);
  return {};
}

}  // namespace assay::ptx
