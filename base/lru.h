// What was used most recently, by a text key: as many entries as are allowed, and as much of their weight.
//
//   Lru<Program> kept(8);
//   if (const Program* known = kept.Find(digest)) return *known;
//   kept.Keep(digest, std::move(program));
//
// Cost: logarithmic in the number of entries. Not thread-safe.
#pragma once

#include <cstddef>
#include <iterator>
#include <limits>
#include <list>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace assay {

template <class Value>
class Lru {
 public:
  explicit Lru(std::size_t most_entries,
               std::size_t most_weight = std::numeric_limits<std::size_t>::max())
      : most_entries_(most_entries), most_weight_(most_weight) {}

  /// The value, now the most recent one; null where there is none. Valid until the next Keep.
  Value* Find(std::string_view key) {
    const auto found = places_.find(key);
    if (found == places_.end()) return nullptr;
    entries_.splice(entries_.begin(), entries_, found->second);
    return &found->second->value;
  }

  /// Puts `value` first, in place of one of the same key. What weighs more than is allowed is not kept.
  void Keep(std::string key, Value value, std::size_t weight = 0) {
    if (const auto found = places_.find(key); found != places_.end()) Drop(found->second);
    if (weight > most_weight_) return;
    entries_.push_front({std::move(key), std::move(value), weight});
    places_.emplace(entries_.front().key, entries_.begin());
    weight_ += weight;
    while (entries_.size() > most_entries_ || weight_ > most_weight_)
      Drop(std::prev(entries_.end()));
  }

  std::size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    std::string key;
    Value value;
    std::size_t weight;
  };
  using Place = typename std::list<Entry>::iterator;

  void Drop(Place entry) {
    weight_ -= entry->weight;
    places_.erase(entry->key);
    entries_.erase(entry);
  }

  std::size_t most_entries_;
  std::size_t most_weight_;
  std::size_t weight_ = 0;
  std::list<Entry> entries_;                  // most recent first
  std::map<std::string_view, Place> places_;  // keys are the entries' own
};

}  // namespace assay
