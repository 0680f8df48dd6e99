// Where values come from: which parameters, variables, special registers and loads each register may
// have been computed from.
//
// An inclusion-based points-to analysis (Andersen 1994), insensitive to flow, context and field: one
// set for each register and for the contents of each variable, grown until nothing changes. Every
// instruction hands what its operands hold to its results, so arithmetic, selections, comparisons and
// predicates carry origins as moves do; calls bind arguments to parameters; a load yields what was
// stored to the variables that its address may be of, and `kMemory` where that is not known.
//
// An address escapes where it is stored to memory that is not followed, handed to code that is not
// there, decides a branch, or where something derived from it says which memory is written: from then
// on an access through an address of unknown origin may reach it. What an access reaches from one object by running past its end into another is not followed: the
// emulator refuses that.
//
// Sets of more than a few dozen origins, and solutions that do not settle, are given up: everything.
// Memory: one set a register. Cost: instructions times rounds (two or three).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "validator/ptx/module.h"

namespace assay::facts {

using ObjectIndex = std::uint32_t;

/// Something that a value can come from.
struct Object {
  enum class Kind : std::uint8_t {
    kMemory,            ///< Loaded from memory that is not followed, or returned by unknown code.
    kEntryParameter,    ///< `index` of entry `function`: a scalar, or the buffer that it points to.
    kModuleVariable,    ///< `index` of the module.
    kFunctionVariable,  ///< `index` of `function`.
    kSpecialRegister,   ///< `index` as ptx::SpecialRegister.
  } kind = Kind::kMemory;
  std::uint32_t function = 0;
  std::uint32_t index = 0;
  bool operator==(const Object&) const = default;
};

/// An object as an origin. Derived: not its address or value as it is (or moved, converted, with
/// something added), but something computed from it, such as one of its bits.
struct Origin {
  ObjectIndex object = 0;
  bool derived = false;
  auto operator<=>(const Origin&) const = default;
};

/// Sorted, without duplicates; or everything.
class OriginSet {
 public:
  static constexpr std::size_t kMost = 48;

  bool Add(Origin origin);  ///< True when it is new.
  bool Add(ObjectIndex object) { return Add(Origin{object, false}); }
  bool Add(const OriginSet& other, bool derived = false);
  bool AddEverything();
  bool Has(ObjectIndex object) const;
  bool everything() const { return everything_; }
  bool empty() const { return !everything_ && origins_.empty(); }
  std::span<const Origin> origins() const { return origins_; }

 private:
  std::vector<Origin> origins_;
  bool everything_ = false;
};

/// The solution for a verified module, which must outlive it.
class Origins {
 public:
  static constexpr ObjectIndex kMemory = 0;

  explicit Origins(const ptx::Module& module);

  /// Was it given up? Then every set is everything.
  bool given_up() const { return given_up_; }
  const Object& object(ObjectIndex index) const { return objects_[index]; }
  std::size_t objects() const { return objects_.size(); }
  /// What a value operand of an instruction of `function` may come from.
  OriginSet Of(std::uint32_t function, const ptx::Operand& operand) const;
  /// Has the address of this object escaped, and at which instruction first?
  bool Escaped(ObjectIndex object) const { return escaped_[object].yes; }
  struct Place {
    bool yes = false;
    std::uint32_t function = 0;
    ptx::InstructionIndex instruction = 0;
  };
  const Place& EscapedAt(ObjectIndex object) const { return escaped_[object]; }
  /// Is there code that can do anything: an indirect call, or one of what is not defined here?
  const Place& unknown_code() const { return unknown_code_; }

 private:
  friend class Solver;
  using Cell = std::uint32_t;

  const ptx::Module& module_;
  std::vector<Object> objects_;
  std::vector<Cell> first_register_;         ///< By function.
  std::vector<ObjectIndex> first_variable_;  ///< Object of variable 0, by function.
  ObjectIndex first_module_variable_ = 0;
  std::vector<ObjectIndex> special_;  ///< By special register; 0: does not occur.
  std::vector<OriginSet> cells_;      ///< Registers, one carry a function.
  std::vector<OriginSet> contents_;   ///< By object.
  std::vector<Place> escaped_;
  Place unknown_code_;
  bool given_up_ = false;
};

/// True for an address that may be of an object which is not among its origins.
bool IsUnknownAddress(const OriginSet& origins, const Origins& solution);

}  // namespace assay::facts
