#include "tests/litmus/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <bitset>
#include <numeric>
#include <optional>

#include "base/error.h"

namespace assay::litmus {
namespace {

constexpr std::size_t kMostEvents = 40;
using Row = std::bitset<kMostEvents>;

/// A relation between events: row i has those that i comes before.
struct Relation {
  std::vector<Row> rows;

  explicit Relation(std::size_t events) : rows(events) {}
  bool Has(std::size_t a, std::size_t b) const { return rows[a][b]; }
  void Add(std::size_t a, std::size_t b) { rows[a].set(b); }
  void Close() {
    for (std::size_t k = 0; k < rows.size(); ++k) {
      for (Row& row : rows) {
        if (row[k]) row |= rows[k];
      }
    }
  }
  bool Reflexive() const {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (rows[i][i]) return true;
    }
    return false;
  }
};

struct Event {
  const Instruction* in = nullptr;  ///< Null: the initial value of `location`.
  int thread = -1;
  int location = -1;
  int barrier = -1;  ///< Which of its thread's barriers.
  bool writes = false;
  bool reads = false;
  bool fence = false;
};

class Model {
 public:
  explicit Model(const Test& test) : test_(test) {
    for (std::size_t l = 0; l < test.locations.size(); ++l)
      events_.push_back({.location = static_cast<int>(l), .writes = true});
    for (std::size_t t = 0; t < test.threads.size(); ++t) {
      int barriers = 0;
      for (const Instruction& in : test.threads[t].code) {
        Event event{.in = &in, .thread = static_cast<int>(t), .location = in.location};
        event.reads = in.Reads();
        event.writes = in.Writes();
        event.fence = in.kind == Instruction::Kind::kFence;
        if (in.kind == Instruction::Kind::kBarrier) event.barrier = barriers++;
        events_.push_back(event);
      }
    }
    ASSAY_CHECK(events_.size() <= kMostEvents, "a litmus test is too long");
    for (std::size_t i = 0; i < events_.size(); ++i) {
      if (events_[i].reads) reads_.push_back(i);
      if (events_[i].fence && events_[i].in->order == Order::kSc) fences_.push_back(i);
    }
    writes_.resize(test.locations.size());
    for (std::size_t i = 0; i < events_.size(); ++i) {
      if (events_[i].writes && events_[i].in != nullptr)
        writes_[static_cast<std::size_t>(events_[i].location)].push_back(i);
    }
  }

  std::set<Outcome> Run() {
    source_.assign(events_.size(), 0);
    ChooseSources(0);
    return std::move(allowed_);
  }

 private:
  // --- what the program says

  bool SameThread(std::size_t a, std::size_t b) const {
    return events_[a].thread == events_[b].thread && events_[a].thread >= 0;
  }
  bool ProgramOrder(std::size_t a, std::size_t b) const { return SameThread(a, b) && a < b; }
  bool Includes(std::size_t a, std::size_t b) const {
    const Event& event = events_[a];
    if (event.in->order == Order::kVolatile || event.in->scope != Scope::kCta) return true;
    return test_.threads[static_cast<std::size_t>(event.thread)].block ==
           test_.threads[static_cast<std::size_t>(events_[b].thread)].block;
  }
  bool IsStrong(std::size_t i) const { return events_[i].fence || events_[i].in->Strong(); }
  /// The initial values are as if written by everybody.
  bool MorallyStrong(std::size_t a, std::size_t b) const {
    if (events_[a].in == nullptr || events_[b].in == nullptr) return true;
    if (events_[a].location >= 0 && events_[b].location >= 0 &&
        events_[a].location != events_[b].location)
      return false;
    if (SameThread(a, b)) return true;
    return IsStrong(a) && IsStrong(b) && Includes(a, b) && Includes(b, a);
  }

  // --- candidates

  void ChooseSources(std::size_t i) {
    if (i == reads_.size()) {
      if (Evaluate()) ChooseOrders(0);
      return;
    }
    const auto location = static_cast<std::size_t>(events_[reads_[i]].location);
    source_[reads_[i]] = location;  // The initial value is event number `location`.
    ChooseSources(i + 1);
    for (const std::size_t write : writes_[location]) {
      if (write == reads_[i]) continue;
      source_[reads_[i]] = write;
      ChooseSources(i + 1);
    }
  }

  /// Values of all events, if none depends on itself (no thin air).
  bool Evaluate() {
    std::vector<std::optional<std::uint32_t>> written(events_.size());
    std::vector<std::optional<std::uint32_t>> read(events_.size());
    for (std::size_t l = 0; l < test_.locations.size(); ++l) written[l] = 0;
    for (std::size_t round = 0; round <= events_.size(); ++round) {
      std::map<std::pair<int, int>, std::optional<std::uint32_t>> registers;
      for (std::size_t i = test_.locations.size(); i < events_.size(); ++i) {
        const Event& event = events_[i];
        const Instruction& in = *event.in;
        if (event.reads) read[i] = written[source_[i]];
        if (event.writes) {
          std::optional<std::uint32_t> value = in.value;
          if (in.operand >= 0) value = registers[{event.thread, in.operand}];
          if (in.kind == Instruction::Kind::kAdd || in.kind == Instruction::Kind::kReduce)
            value = value && read[i] ? std::optional(*value + *read[i]) : std::nullopt;
          written[i] = value;
        }
        if (in.result >= 0) registers[{event.thread, in.result}] = read[i];
      }
    }
    registers_.clear();
    for (std::size_t i = test_.locations.size(); i < events_.size(); ++i) {
      const Event& event = events_[i];
      if ((event.reads && !read[i]) || (event.writes && !written[i])) return false;
      if (event.in->result >= 0)
        registers_[fmt::format("{}:r{}", event.thread, event.in->result)] = *read[i];
    }
    written_.clear();
    for (const auto& value : written) written_.push_back(value.value_or(0));
    return true;
  }

  void ChooseOrders(std::size_t location) {
    if (location == writes_.size()) {
      std::ranges::sort(fences_);
      do {
        Judge();
      } while (std::ranges::next_permutation(fences_).found);
      return;
    }
    std::ranges::sort(writes_[location]);
    do {
      ChooseOrders(location + 1);
    } while (std::ranges::next_permutation(writes_[location]).found);
  }

  // --- derived relations

  /// W before R where R takes its value from W, both morally strong; through read-modify-writes.
  Relation Observation() const {
    Relation observed(events_.size());
    for (const std::size_t read : reads_) {
      if (MorallyStrong(source_[read], read)) observed.Add(source_[read], read);
    }
    Relation all = observed;
    for (std::size_t round = 0; round < reads_.size(); ++round) {
      for (std::size_t w = 0; w < events_.size(); ++w) {
        for (const std::size_t z : reads_) {
          if (all.Has(w, z) && events_[z].writes) all.rows[w] |= observed.rows[z];
        }
      }
    }
    return all;
  }

  /// First operation and write of each release pattern; read and last operation of each acquire one.
  std::vector<std::pair<std::size_t, std::size_t>> ReleasePatterns() const {
    std::vector<std::pair<std::size_t, std::size_t>> patterns;
    for (std::size_t a = test_.locations.size(); a < events_.size(); ++a) {
      const bool releases = events_[a].writes && events_[a].in->Releases();
      if (releases) patterns.emplace_back(a, a);
      for (std::size_t w = a + 1; w < events_.size(); ++w) {
        if (!ProgramOrder(a, w) || !events_[w].writes || !IsStrong(w)) continue;
        if (events_[a].fence || (releases && events_[a].location == events_[w].location))
          patterns.emplace_back(a, w);
      }
    }
    return patterns;
  }
  std::vector<std::pair<std::size_t, std::size_t>> AcquirePatterns() const {
    std::vector<std::pair<std::size_t, std::size_t>> patterns;
    for (std::size_t a = test_.locations.size(); a < events_.size(); ++a) {
      const bool acquires = events_[a].reads && events_[a].in->Acquires();
      if (acquires) patterns.emplace_back(a, a);
      for (std::size_t r = test_.locations.size(); r < a; ++r) {
        if (!ProgramOrder(r, a) || !events_[r].reads || !IsStrong(r)) continue;
        if (events_[a].fence || (acquires && events_[a].location == events_[r].location))
          patterns.emplace_back(r, a);
      }
    }
    return patterns;
  }

  Relation BaseCausality(const Relation& observed) const {
    Relation base(events_.size());
    for (std::size_t a = 0; a < events_.size(); ++a) {
      for (std::size_t b = 0; b < events_.size(); ++b) {
        if (ProgramOrder(a, b)) base.Add(a, b);
        // The initial values come before everything.
        if (events_[a].in == nullptr && events_[b].in != nullptr) base.Add(a, b);
        if (events_[a].barrier >= 0 && events_[a].barrier == events_[b].barrier && a != b &&
            test_.threads[static_cast<std::size_t>(events_[a].thread)].block ==
                test_.threads[static_cast<std::size_t>(events_[b].thread)].block)
          base.Add(a, b);
      }
    }
    for (const auto& [first, write] : ReleasePatterns()) {
      for (const auto& [read, last] : AcquirePatterns()) {
        if (observed.Has(write, read) && MorallyStrong(first, last)) base.Add(first, last);
      }
    }
    for (std::size_t i = 0; i < fences_.size(); ++i) {
      for (std::size_t j = i + 1; j < fences_.size(); ++j) {
        if (MorallyStrong(fences_[i], fences_[j])) base.Add(fences_[i], fences_[j]);
      }
    }
    base.Close();
    return base;
  }

  // --- axioms

  void Judge() {
    const std::size_t n = events_.size();
    const Relation observed = Observation();
    const Relation base = BaseCausality(observed);
    Relation causality = base;
    for (std::size_t w = 0; w < n; ++w) {
      for (std::size_t z = 0; z < n; ++z) {
        if (observed.Has(w, z)) causality.rows[w] |= base.rows[z];
      }
    }
    // Fence-SC: the order of fences does not contradict causality.
    for (std::size_t i = 0; i < fences_.size(); ++i) {
      for (std::size_t j = i + 1; j < fences_.size(); ++j) {
        if (MorallyStrong(fences_[i], fences_[j]) && causality.Has(fences_[j], fences_[i])) return;
      }
    }
    // Coherence order relates writes that are morally strong or in causality order; the others race.
    Relation coherence(n);
    for (std::size_t l = 0; l < writes_.size(); ++l) {
      const std::vector<std::size_t>& order = writes_[l];
      for (std::size_t i = 0; i < order.size(); ++i) {
        coherence.Add(l, order[i]);
        for (std::size_t j = i + 1; j < order.size(); ++j) {
          if (causality.Has(order[j], order[i])) return;
          if (MorallyStrong(order[i], order[j]) || causality.Has(order[i], order[j]))
            coherence.Add(order[i], order[j]);
        }
      }
    }
    coherence.Close();
    Relation communication = coherence;
    for (const std::size_t read : reads_) {
      communication.Add(source_[read], read);
      for (std::size_t w = 0; w < n; ++w) {
        if (w != read && coherence.Has(source_[read], w)) communication.Add(read, w);
      }
    }
    // Atomicity: nothing between what a read-modify-write read and what it wrote.
    for (const std::size_t z : reads_) {
      if (!events_[z].writes) continue;
      for (std::size_t w = 0; w < n; ++w) {
        if (w != z && events_[w].writes && MorallyStrong(w, z) && coherence.Has(source_[z], w) &&
            coherence.Has(w, z))
          return;
      }
      if (coherence.Has(z, source_[z])) return;
    }
    // Causality: communication does not contradict it.
    for (std::size_t a = 0; a < n; ++a) {
      for (std::size_t b = 0; b < n; ++b) {
        if (communication.Has(a, b) && causality.Has(b, a)) return;
      }
    }
    // SC-per-location, among morally strong operations.
    Relation per_location(n);
    for (std::size_t a = 0; a < n; ++a) {
      for (std::size_t b = 0; b < n; ++b) {
        if (events_[a].location < 0 || events_[a].location != events_[b].location ||
            !MorallyStrong(a, b))
          continue;
        if (communication.Has(a, b) || ProgramOrder(a, b)) per_location.Add(a, b);
      }
    }
    per_location.Close();
    if (per_location.Reflexive()) return;

    Outcome outcome = registers_;
    for (std::size_t l = 0; l < writes_.size(); ++l)
      outcome[test_.locations[l]] = written_[writes_[l].empty() ? l : writes_[l].back()];
    allowed_.insert(std::move(outcome));
  }

  const Test& test_;
  std::vector<Event> events_;
  std::vector<std::size_t> reads_;
  std::vector<std::size_t> fences_;               ///< In the order that is tried.
  std::vector<std::vector<std::size_t>> writes_;  ///< By location, in the order that is tried.
  std::vector<std::size_t> source_;
  std::vector<std::uint32_t> written_;
  Outcome registers_;
  std::set<Outcome> allowed_;
};

}  // namespace

std::set<Outcome> AllowedOutcomes(const Test& test) { return Model(test).Run(); }

}  // namespace assay::litmus
