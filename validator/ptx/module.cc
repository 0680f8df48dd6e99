#include "validator/ptx/module.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <unordered_map>

#include "validator/ptx/names.h"

namespace assay::ptx {
namespace {

struct TypeRow {
  std::string_view name;
  int bits;
};
constexpr std::array kTypes = {
    TypeRow{"none", 0},    TypeRow{"pred", 1},     TypeRow{"b8", 8},      TypeRow{"b16", 16},
    TypeRow{"b32", 32},    TypeRow{"b64", 64},     TypeRow{"b128", 128},  TypeRow{"u8", 8},
    TypeRow{"u16", 16},    TypeRow{"u32", 32},     TypeRow{"u64", 64},    TypeRow{"s8", 8},
    TypeRow{"s16", 16},    TypeRow{"s32", 32},     TypeRow{"s64", 64},    TypeRow{"u16x2", 32},
    TypeRow{"s16x2", 32},  TypeRow{"u8x4", 32},    TypeRow{"s8x4", 32},   TypeRow{"f16", 16},
    TypeRow{"f16x2", 32},  TypeRow{"bf16", 16},    TypeRow{"bf16x2", 32}, TypeRow{"tf32", 32},
    TypeRow{"f32", 32},    TypeRow{"f32x2", 64},   TypeRow{"f64", 64},    TypeRow{"e4m3", 8},
    TypeRow{"e5m2", 8},    TypeRow{"e4m3x2", 16},  TypeRow{"e5m2x2", 16}, TypeRow{"e4m3x4", 32},
    TypeRow{"e5m2x4", 32}, TypeRow{"e2m3", 8},     TypeRow{"e3m2", 8},    TypeRow{"e2m1", 4},
    TypeRow{"ue8m0", 8},   TypeRow{"ue8m0x2", 16}, TypeRow{"e2m1x2", 8},  TypeRow{"e2m3x2", 16},
    TypeRow{"e3m2x2", 16}, TypeRow{"u4", 4},       TypeRow{"s4", 4},      TypeRow{"u2", 2},
    TypeRow{"s2", 2},      TypeRow{"b1", 1},
};
static_assert(kTypes.size() == static_cast<std::size_t>(Type::kB1) + 1);

constexpr std::array<std::string_view, 11> kSpaces = {
    "generic",      "reg",         "const",  "global",      "local",          "param",
    "param::entry", "param::func", "shared", "shared::cta", "shared::cluster"};
static_assert(kSpaces.size() == static_cast<std::size_t>(Space::kSharedCluster) + 1);

struct OpcodeRow {
  std::string_view mnemonic;
  Family family;
};
constexpr std::array kOpcodes = {
#define OPCODE(name, mnemonic, family, ...) OpcodeRow{mnemonic, Family::k##family},
#include "validator/ptx/opcodes.def"
#undef OPCODE
};

constexpr std::array<std::string_view, kModCount> kMods = {
#define MODIFIER(name, text) text,
#include "validator/ptx/modifiers.def"
#undef MODIFIER
};

struct SpecialRow {
  std::string_view name;
  bool vector;
};
constexpr std::array kSpecials = {
#define SPECIAL_REGISTER(name, text, vector) SpecialRow{text, vector},
#include "validator/ptx/special_registers.def"
#undef SPECIAL_REGISTER
};

template <class E>
using NameMap = std::unordered_map<std::string_view, E>;

template <class E, class Range, class Project>
NameMap<E> MakeMap(const Range& rows, Project project) {
  NameMap<E> map;
  std::size_t i = 0;
  for (const auto& row : rows) map.emplace(project(row), static_cast<E>(i++));
  return map;
}

template <class E>
std::optional<E> Find(const NameMap<E>& map, std::string_view name) {
  const auto found = map.find(name);
  if (found == map.end()) return std::nullopt;
  return found->second;
}

constexpr auto kIdentity = [](std::string_view name) { return name; };
constexpr auto kRowName = [](const auto& row) { return row.name; };

}  // namespace

int BitsOf(Type type) { return kTypes[static_cast<std::size_t>(type)].bits; }
std::string_view Name(Type type) { return kTypes[static_cast<std::size_t>(type)].name; }
std::string_view Name(Space space) { return kSpaces[static_cast<std::size_t>(space)]; }
std::string_view Mnemonic(Opcode opcode) {
  return kOpcodes[static_cast<std::size_t>(opcode)].mnemonic;
}
Family FamilyOf(Opcode opcode) { return kOpcodes[static_cast<std::size_t>(opcode)].family; }
std::string_view Name(Mod mod) { return kMods[static_cast<std::size_t>(mod)]; }
std::string_view Name(SpecialRegister special) {
  return kSpecials[static_cast<std::size_t>(special)].name;
}
bool IsVector(SpecialRegister special) {
  return kSpecials[static_cast<std::size_t>(special)].vector;
}

Type TypeOf(SpecialRegister special) {
  switch (special) {
    case SpecialRegister::kClock64:
    case SpecialRegister::kGlobaltimer:
    case SpecialRegister::kGridid:
    case SpecialRegister::kCurrentGraphExec:
    case SpecialRegister::kPm0Wide:
    case SpecialRegister::kPm1Wide:
    case SpecialRegister::kPm2Wide:
    case SpecialRegister::kPm3Wide:
    case SpecialRegister::kPm4Wide:
    case SpecialRegister::kPm5Wide:
    case SpecialRegister::kPm6Wide:
    case SpecialRegister::kPm7Wide:
      return Type::kU64;
    case SpecialRegister::kIsExplicitCluster:
      return Type::kPred;
    default:
      return Type::kU32;
  }
}

std::optional<Type> FindType(std::string_view name) {
  static const NameMap<Type> map = [] {
    NameMap<Type> types = MakeMap<Type>(kTypes, kRowName);
    types.erase("none");
    return types;
  }();
  return Find(map, name);
}

std::optional<Space> FindSpace(std::string_view name) {
  static const NameMap<Space> map = [] {
    NameMap<Space> spaces = MakeMap<Space>(kSpaces, kIdentity);
    spaces.erase(
        "generic");  // A modifier where it is written: fence.proxy.tensormap::generic and its like.
    return spaces;
  }();
  return Find(map, name);
}

std::optional<Mod> FindMod(std::string_view name) {
  static const NameMap<Mod> map = MakeMap<Mod>(kMods, kIdentity);
  return Find(map, name);
}

std::optional<SpecialRegister> FindSpecialRegister(std::string_view name) {
  static const NameMap<SpecialRegister> map = MakeMap<SpecialRegister>(kSpecials, kRowName);
  return Find(map, name);
}

std::optional<OpcodeMatch> FindOpcode(std::string_view dotted) {
  static const NameMap<Opcode> map =
      MakeMap<Opcode>(kOpcodes, [](const OpcodeRow& row) { return row.mnemonic; });
  constexpr int kMostWords = 5;
  std::optional<OpcodeMatch> best;
  std::size_t end = 0;
  for (int word = 0; word < kMostWords && end != std::string_view::npos; ++word) {
    end = dotted.find('.', end == 0 ? 0 : end + 1);
    const std::string_view head = dotted.substr(0, end);
    if (const auto opcode = Find(map, head)) best = OpcodeMatch{*opcode, head.size()};
  }
  return best;
}

bool IsKnownUncovered(std::string_view first_word) {
  constexpr std::string_view kWords[] = {
      "tcgen05",  "tex",    "tld4",  "txq",   "suld",     "sust",
      "sured",    "suq",    "vadd",  "vsub",  "vabsdiff", "vmin",
      "vmax",     "vshl",   "vshr",  "vmad",  "vset",     "vadd2",
      "vsub2",    "vavrg2", "vmin2", "vmax2", "vset2",    "vadd4",
      "vsub4",    "vavrg4", "vmin4", "vmax4", "vset4",    "clusterlaunchcontrol",
      "multimem", "brx"};
  for (const std::string_view word : kWords) {
    if (word == first_word) return true;
  }
  return false;
}

bool Instruction::operator==(const Instruction& other) const {
  const auto tie = [](const Instruction& in) {
    return std::tie(in.opcode, in.guard, in.form, in.space, in.space2, in.vector_width, in.types,
                    in.mods, in.operands, in.location);
  };
  return tie(*this) == tie(other);
}

bool Variable::operator==(const Variable& other) const {
  const auto tie = [](const Variable& v) {
    return std::tie(v.name, v.space, v.type, v.align, v.bytes, v.is_extern, v.is_visible, v.is_weak,
                    v.is_common, v.is_pointer, v.pointee_space, v.pointee_align, v.initialiser,
                    v.relocations);
  };
  return tie(*this) == tie(other);
}

bool Function::operator==(const Function& other) const {
  const auto tie = [](const Function& f) {
    return std::tie(f.name, f.is_entry, f.has_body, f.no_return, f.returns, f.params, f.registers,
                    f.variables, f.prototypes, f.body, f.labels, f.bounds, f.is_visible,
                    f.is_extern, f.is_weak, f.alias_of);
  };
  return tie(*this) == tie(other);
}

const Function* Module::FindFunction(std::string_view name) const {
  for (const Function& function : functions) {
    if (function.name == name) return &function;
  }
  return nullptr;
}

SourceLocation UserFrame(const Module& module, std::int32_t location) {
  std::vector<const SourceLocation*> frames;  // innermost first
  // A chain is finite: the parser links a location only to an older one.
  while (location >= 0 && static_cast<std::size_t>(location) < module.locations.size()) {
    frames.push_back(&module.locations[static_cast<std::size_t>(location)]);
    if (frames.back()->inlined_at >= location) break;
    location = frames.back()->inlined_at;
  }
  if (frames.empty()) return {};
  const auto own = std::ranges::find(frames, frames.back()->file, &SourceLocation::file);
  return **own;
}

}  // namespace assay::ptx
