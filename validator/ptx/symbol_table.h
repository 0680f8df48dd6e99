// Which declaration a name means, with nested scopes and parameterised register names (`.reg .b32
// %r<17>`).
//
// Names are views into the PTX text. A look-up is a constant number of hashes however deep the
// scope; leaving a scope undoes its declarations. One table serves a module: module-level names
// live at depth 0, a function's parameters at 1, its body from 2.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace assay::ptx {

struct Binding {
  enum class Kind : std::uint8_t {
    kRegister,
    kModuleVariable,
    kFunctionVariable,
    kFunction,
    kPrototype,
    kTargetList,
  };
  Kind kind = Kind::kRegister;
  std::uint32_t index = 0;
  std::uint32_t depth = 0;  ///< Filled by Declare.
};

class SymbolTable {
 public:
  void Enter() {
    ++depth_;
    marks_.push_back(undo_.size());
  }
  void Leave();

  /// False when the scope already has the name.
  bool Declare(std::string_view name, Binding binding);
  /// Declares prefix0 .. prefix(count-1) as registers first .. first+count-1.
  bool DeclareRange(std::string_view prefix, std::uint32_t first, std::uint32_t count);
  std::optional<Binding> Find(std::string_view name) const;

 private:
  struct Range {
    std::uint32_t first, count, depth;
  };
  struct Undo {
    std::string_view name;
    bool is_range;
    bool had_previous;
    Binding previous;
  };
  const Range* FindRange(std::string_view name, std::uint32_t& number) const;

  std::uint32_t depth_ = 0;
  std::unordered_map<std::string_view, Binding> names_;
  std::unordered_map<std::string_view, std::vector<Range>> ranges_;
  std::vector<Undo> undo_;
  std::vector<std::size_t> marks_;
};

/// Labels of one function. A label is seen in its scope and in the scopes inside it, before and
/// after its place.
class LabelTable {
 public:
  LabelTable() { Clear(); }
  void Clear();
  void Enter();
  void Leave() { current_ = scopes_[current_]; }
  std::uint32_t scope() const { return current_; }
  /// False when the scope already has the label.
  bool Declare(std::string_view name, std::uint32_t target);
  std::optional<std::uint32_t> Find(std::string_view name, std::uint32_t scope) const;

 private:
  struct Key {
    std::string_view name;
    std::uint32_t scope;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const {
      return std::hash<std::string_view>()(key.name) ^ (key.scope * 0x9e3779b97f4a7c15u);
    }
  };
  std::uint32_t current_ = 0;
  std::vector<std::uint32_t> scopes_;  ///< Parent of each; the root is its own.
  std::unordered_map<Key, std::uint32_t, Hash> labels_;
};

}  // namespace assay::ptx
