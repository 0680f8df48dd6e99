#include "validator/ptx/symbol_table.h"

#include <algorithm>
#include <string>

namespace assay::ptx {
namespace {

constexpr std::size_t kMostDigits = 7;  // Register counts are limited to 2^20.

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

/// The number that `digits` spells without leading zeros, if it is short enough to be a register's.
std::optional<std::uint32_t> RegisterNumber(std::string_view digits) {
  if (digits.empty() || digits.size() > kMostDigits) return std::nullopt;
  if (digits.size() > 1 && digits[0] == '0') return std::nullopt;
  std::uint32_t number = 0;
  for (const char c : digits) number = number * 10 + static_cast<std::uint32_t>(c - '0');
  return number;
}

}  // namespace

void SymbolTable::Leave() {
  for (; undo_.size() > marks_.back(); undo_.pop_back()) {
    const Undo& undo = undo_.back();
    if (undo.is_range) {
      ranges_[undo.name].pop_back();
    } else if (undo.had_previous) {
      names_[undo.name] = undo.previous;
    } else {
      names_.erase(undo.name);
    }
  }
  marks_.pop_back();
  --depth_;
}

const SymbolTable::Range* SymbolTable::FindRange(std::string_view name,
                                                 std::uint32_t& number) const {
  std::size_t split = name.size();
  while (split > 0 && name.size() - split < kMostDigits && IsDigit(name[split - 1])) --split;
  const Range* best = nullptr;
  for (; split < name.size(); ++split) {
    const auto parsed = RegisterNumber(name.substr(split));
    if (!parsed) continue;
    const auto found = ranges_.find(name.substr(0, split));
    if (found == ranges_.end()) continue;
    for (auto range = found->second.rbegin(); range != found->second.rend(); ++range) {
      if (*parsed >= range->count || (best != nullptr && best->depth >= range->depth)) continue;
      best = &*range;
      number = *parsed;
      break;
    }
  }
  return best;
}

bool SymbolTable::Declare(std::string_view name, Binding binding) {
  binding.depth = depth_;
  std::uint32_t number = 0;
  const Range* const range = FindRange(name, number);
  if (range != nullptr && range->depth == depth_) return false;
  const auto [entry, is_new] = names_.try_emplace(name, binding);
  if (!is_new && entry->second.depth == depth_) return false;
  undo_.push_back({.name = name,
                   .is_range = false,
                   .had_previous = !is_new,
                   .previous = is_new ? Binding{} : entry->second});
  entry->second = binding;
  return true;
}

bool SymbolTable::DeclareRange(std::string_view prefix, std::uint32_t first, std::uint32_t count) {
  std::vector<Range>& ranges = ranges_[prefix];
  if (!ranges.empty() && ranges.back().depth == depth_) return false;
  // A name declared by itself must not lie in the range. Only this scope's names can clash, and
  // they are the latest in undo_.
  const std::size_t scope_start = marks_.empty() ? 0 : marks_.back();
  const std::size_t declared = undo_.size() - scope_start;
  if (declared <= count) {
    for (std::size_t i = scope_start; i < undo_.size(); ++i) {
      const std::string_view name = undo_[i].name;
      if (undo_[i].is_range || !name.starts_with(prefix)) continue;
      const std::string_view digits = name.substr(prefix.size());
      if (!std::all_of(digits.begin(), digits.end(), IsDigit)) continue;
      const auto number = RegisterNumber(digits);
      if (number && *number < count) return false;
    }
  } else {
    for (std::uint32_t i = 0; i < count; ++i) {
      const auto found = names_.find(std::string(prefix) + std::to_string(i));
      if (found != names_.end() && found->second.depth == depth_) return false;
    }
  }
  ranges.push_back({first, count, depth_});
  undo_.push_back({.name = prefix, .is_range = true, .had_previous = false, .previous = {}});
  return true;
}

std::optional<Binding> SymbolTable::Find(std::string_view name) const {
  std::optional<Binding> best;
  if (const auto found = names_.find(name); found != names_.end()) best = found->second;
  if (!name.empty() && IsDigit(name.back())) {
    std::uint32_t number = 0;
    const Range* const range = FindRange(name, number);
    if (range != nullptr && (!best || range->depth > best->depth)) {
      best = Binding{Binding::Kind::kRegister, range->first + number, range->depth};
    }
  }
  return best;
}

void LabelTable::Clear() {
  current_ = 0;
  scopes_.assign(1, 0);
  labels_.clear();
}

void LabelTable::Enter() {
  scopes_.push_back(current_);
  current_ = static_cast<std::uint32_t>(scopes_.size() - 1);
}

bool LabelTable::Declare(std::string_view name, std::uint32_t target) {
  return labels_.try_emplace(Key{name, current_}, target).second;
}

std::optional<std::uint32_t> LabelTable::Find(std::string_view name, std::uint32_t scope) const {
  while (true) {
    if (const auto found = labels_.find(Key{name, scope}); found != labels_.end()) {
      return found->second;
    }
    if (scope == 0) return std::nullopt;
    scope = scopes_[scope];
  }
}

}  // namespace assay::ptx
