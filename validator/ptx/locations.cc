#include "validator/ptx/locations.h"

#include <utility>

namespace assay::ptx {
namespace {

// A few bytes of hostile text can name a long string many times over.
constexpr std::size_t kLongestName = 4096;
constexpr std::size_t kMostNameBytes = std::size_t{32} << 20;

}  // namespace

std::string WithoutControls(std::string_view text) {
  std::string clean(text);
  for (char& c : clean) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return clean;
}

std::int32_t LocationBuilder::Intern(const Raw& raw) {
  const auto [entry, is_new] = known_.try_emplace(raw, static_cast<std::int32_t>(raw_.size()));
  if (is_new) raw_.push_back(raw);
  latest_[raw.position] = entry->second;
  return entry->second;
}

std::int32_t LocationBuilder::Add(LinePosition position) {
  return Intern({.position = position, .inlined_at = -1, .label = {}, .offset = 0});
}

std::int32_t LocationBuilder::AddInlined(LinePosition position, std::string_view label,
                                         std::uint64_t offset, LinePosition call_site) {
  const auto found = latest_.find(call_site);
  const std::int32_t site = found != latest_.end() ? found->second : Add(call_site);
  return Intern({.position = position, .inlined_at = site, .label = label, .offset = offset});
}

std::string LocationBuilder::FunctionName(const Raw& raw) const {
  const auto found = labels_.find(raw.label);
  if (found == labels_.end() || raw.offset > debug_text_.size() - found->second) return {};
  const std::string_view text = std::string_view(debug_text_).substr(found->second + raw.offset);
  return WithoutControls(text.substr(0, text.find('\0')).substr(0, kLongestName));
}

void LocationBuilder::Finish(Module& module) const {
  // Two raw locations may differ in their label alone and have one name.
  using Key = std::tuple<LinePosition, std::int32_t, std::string>;
  std::map<Key, std::int32_t> merged;
  std::vector<std::int32_t> renumbered(raw_.size(), -1);
  std::vector<std::int32_t> chain;
  std::size_t name_bytes = 0;
  const auto place = [&](std::int32_t wanted) {
    chain.clear();
    for (std::int32_t i = wanted; i >= 0 && renumbered[static_cast<std::size_t>(i)] < 0;
         i = raw_[static_cast<std::size_t>(i)].inlined_at) {
      chain.push_back(i);
    }
    for (; !chain.empty(); chain.pop_back()) {
      const Raw& raw = raw_[static_cast<std::size_t>(chain.back())];
      const std::int32_t site =
          raw.inlined_at < 0 ? -1 : renumbered[static_cast<std::size_t>(raw.inlined_at)];
      SourceLocation location{.file = raw.position.file,
                              .line = raw.position.line,
                              .column = raw.position.column,
                              .inlined_at = site,
                              .function = {}};
      if (!raw.label.empty() && name_bytes < kMostNameBytes) location.function = FunctionName(raw);
      name_bytes += location.function.size();
      const auto [entry, is_new] =
          merged.try_emplace(Key{raw.position, site, location.function},
                             static_cast<std::int32_t>(module.locations.size()));
      if (is_new) module.locations.push_back(std::move(location));
      renumbered[static_cast<std::size_t>(chain.back())] = entry->second;
    }
    return renumbered[static_cast<std::size_t>(wanted)];
  };
  for (Function& function : module.functions) {
    for (Instruction& in : function.body) {
      if (in.location >= 0) in.location = place(in.location);
    }
  }
}

}  // namespace assay::ptx
