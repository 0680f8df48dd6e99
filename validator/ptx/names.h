// Text to enumerator, for everything that has a fixed name in PTX. The other direction is Name()
// and Mnemonic() in module.h.
//
// Built once, on first use, from the .def tables; immutable afterwards, so safe to use from any
// thread. A look-up is one hash.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "validator/ptx/module.h"

namespace assay::ptx {

/// Names are given without the dot.
std::optional<Type> FindType(std::string_view name);
std::optional<Space> FindSpace(std::string_view name);
std::optional<Mod> FindMod(std::string_view name);
/// With the percent sign, without the component: "%tid".
std::optional<SpecialRegister> FindSpecialRegister(std::string_view name);
bool IsVector(SpecialRegister special);
/// U64 for %clock64 and its like, pred for %is_explicit_cluster, u32 otherwise.
Type TypeOf(SpecialRegister special);

struct OpcodeMatch {
  Opcode opcode;
  std::size_t length;  ///< Of the mnemonic within the text.
};
/// The longest mnemonic that `dotted` starts with: "cp.async.bulk.tensor" of
/// "cp.async.bulk.tensor.2d.shared::cluster".
std::optional<OpcodeMatch> FindOpcode(std::string_view dotted);

/// True for instructions that PTX has and Assay does not cover (textures, surfaces, video, tcgen05
/// ...), by first word.
bool IsKnownUncovered(std::string_view first_word);

inline constexpr std::size_t kOpcodeCount = 0
#define OPCODE(...) +1
#include "validator/ptx/opcodes.def"
#undef OPCODE
    ;
inline constexpr std::size_t kModCount = 0
#define MODIFIER(name, text) +1
#include "validator/ptx/modifiers.def"
#undef MODIFIER
    ;

}  // namespace assay::ptx
