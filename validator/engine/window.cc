#include "validator/engine/window.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace assay::engine {
namespace {

// Blocks that run whole where each loops over millions of elements.
constexpr std::uint64_t kFew = 16;

std::uint64_t Blocks(const Launch& launch) {
  return std::uint64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2];
}

/// Of the arguments of an entry, those that it stores to, by additions only where these count; nothing where that is not
/// known.
std::optional<std::set<std::size_t>> StoredTo(const facts::Facts& program, const std::string& entry,
                                              bool additions_count = false) {
  if (program.memory_left_out > 0) return std::nullopt;
  std::set<std::size_t> stored;
  for (const facts::MemoryUse& use : program.memory) {
    const bool adds = use.opcode == "red" || use.opcode == "atom";
    if (!use.writes || (adds && !additions_count) || use.space.starts_with("shared") ||
        use.space == "local")
      continue;
    for (const std::string& origin : use.origins) {
      const std::size_t mark = origin.rfind('#');
      if (mark == std::string::npos) return std::nullopt;
      if (origin.substr(0, mark) != entry) continue;
      stored.insert(std::stoul(origin.substr(mark + 1)));
    }
  }
  return stored;
}

/// Of the arguments of an entry, those that it adds to, whether or not it stores there as well; of a known program (StoredTo).
std::set<std::size_t> AddedTo(const facts::Facts& program, const std::string& entry) {
  std::set<std::size_t> added;
  for (const facts::MemoryUse& use : program.memory) {
    if (!use.writes || (use.opcode != "red" && use.opcode != "atom")) continue;
    for (const std::string& origin : use.origins) {
      const std::size_t mark = origin.rfind('#');
      if (mark != std::string::npos && origin.substr(0, mark) == entry)
        added.insert(std::stoul(origin.substr(mark + 1)));
    }
  }
  return added;
}

/// The buffers that those arguments of a launch are.
std::set<std::uint32_t> BuffersOf(const Launch& launch, const std::set<std::size_t>& arguments) {
  std::set<std::uint32_t> buffers;
  for (const std::size_t argument : arguments) {
    if (argument < launch.args.size() && launch.args[argument].kind == Argument::Kind::kBuffer)
      buffers.insert(launch.args[argument].buffer);
  }
  return buffers;
}

bool UsesAny(const Launch& launch, const std::set<std::uint32_t>& buffers) {
  return std::ranges::any_of(launch.args, [&](const Argument& argument) {
    return argument.kind == Argument::Kind::kBuffer && buffers.contains(argument.buffer);
  });
}

/// Is all that launch `number` leaves to later ones what it has added up?
bool HandsOnSumsAlone(const Execution& execution, const facts::Facts& program, std::size_t number) {
  const Launch& launch = execution.launches[number];
  const auto stored = StoredTo(program, launch.entry);
  if (!stored) return number + 1 == execution.launches.size();
  const std::set<std::uint32_t> buffers = BuffersOf(launch, *stored);
  return std::none_of(execution.launches.begin() + static_cast<std::ptrdiff_t>(number) + 1,
                      execution.launches.end(),
                      [&](const Launch& later) { return UsesAny(later, buffers); });
}

/// The blocks at both ends, or the last one. Where a grid has a few rows along x, those of each of them: work on
/// one result is often dealt out to them (a sum in parts), and what a later launch makes of it is known where
/// all of them ran.
std::vector<BlockRange> EndsOf(const Launch& launch, bool last_block_only) {
  constexpr std::uint64_t kFewRows = 32;
  const std::uint64_t across = launch.grid[0];
  const std::uint64_t rows = Blocks(launch) / across;
  const bool by_rows = rows > 1 && rows <= kFewRows && across > 3;
  const std::uint64_t count = by_rows ? rows : 1;
  const std::uint64_t length = by_rows ? across : Blocks(launch);
  std::vector<BlockRange> ends;
  for (std::uint64_t first = 0; first < count * length; first += length) {
    if (!last_block_only) ends.push_back({first, 1});
    const std::uint64_t last = last_block_only ? 1 : 2;
    ends.push_back({first + length - last, last});
  }
  return ends;
}

void LeaveEnds(Execution& execution, bool last_block_only) {
  for (Launch& launch : execution.launches) {
    if (Blocks(launch) > (last_block_only ? kFew : kWholeGrid))
      launch.only = EndsOf(launch, last_block_only);
  }
}

}  // namespace

bool IsAlone(const Launch& launch) {
  const std::uint64_t cluster =
      std::uint64_t{launch.cluster[0]} * launch.cluster[1] * launch.cluster[2];
  return !launch.cooperative && cluster <= 1;
}

std::set<std::uint32_t> MayWriteTo(const Execution& execution, const facts::Facts* program,
                                   const Launch& launch) {
  const auto stored = program == nullptr || !program->fault.empty()
                          ? std::nullopt
                          : StoredTo(*program, launch.entry, /*additions_count=*/true);
  std::set<std::uint32_t> buffers;
  for (std::size_t i = 0; i < launch.args.size(); ++i) {
    const Argument& argument = launch.args[i];
    if (argument.kind != Argument::Kind::kScalar &&
        execution.buffers[argument.buffer].role != BufferRole::kInput &&
        (!stored || argument.kind != Argument::Kind::kBuffer || stored->contains(i)))
      buffers.insert(argument.buffer);
  }
  return buffers;
}

Cut MayCut(const Execution& execution, const facts::Facts* program, std::size_t number) {
  const Launch& launch = execution.launches[number];
  if (launch.cooperative || MayBe(facts::BlocksDepend(program, launch.entry))) return Cut::kRefused;
  const std::set<std::uint32_t> touched = MayWriteTo(execution, program, launch);
  Cut cut = Cut::kIndependent;
  for (std::size_t later = number + 1; later < execution.launches.size(); ++later) {
    for (const Argument& argument : execution.launches[later].args) {
      if (argument.kind == Argument::Kind::kScalar || !touched.contains(argument.buffer)) continue;
      if (execution.buffers[argument.buffer].fill != BufferFill::kUninitialised)
        return Cut::kRefused;
      cut = Cut::kHandedOn;
    }
  }
  return cut;
}

std::optional<std::set<std::uint32_t>> StoredBy(const Execution& execution,
                                                const facts::Facts* program, std::size_t launch) {
  if (program == nullptr || !program->fault.empty()) return std::nullopt;
  const Launch& of = execution.launches[launch];
  const auto arguments = StoredTo(*program, of.entry);
  return arguments ? std::optional(BuffersOf(of, *arguments)) : std::nullopt;
}

std::set<std::uint32_t> OutputsOfSeveral(const Execution& execution, const facts::Facts* program) {
  std::set<std::uint32_t> once, several;
  for (const Launch& launch : execution.launches) {
    for (const std::uint32_t buffer : MayWriteTo(execution, program, launch)) {
      if (execution.buffers[buffer].role == BufferRole::kOutput && !once.insert(buffer).second)
        several.insert(buffer);
    }
  }
  return several;
}

Cut CutToEnds(Execution& execution, const facts::Facts* program, bool last_block_only) {
  const std::uint64_t whole = last_block_only ? kFew : kWholeGrid;
  Cut cut = Cut::kIndependent;
  for (std::size_t i = 0; i < execution.launches.size(); ++i) {
    if (Blocks(execution.launches[i]) <= whole) continue;
    const Cut one = MayCut(execution, program, i);
    if (one == Cut::kRefused) return one;
    if (one == Cut::kHandedOn) cut = one;
  }
  LeaveEnds(execution, last_block_only);
  return cut;
}

bool TakeEnds(Execution& execution, bool last_block_only) {
  if (!std::ranges::all_of(execution.launches, IsAlone)) return false;
  LeaveEnds(execution, last_block_only);
  return true;
}

bool MayFindOld(const Execution& execution, const facts::Facts* program,
                std::optional<std::size_t> readers) {
  const std::span<const Launch> launches =
      std::span(execution.launches).first(readers.value_or(execution.launches.size()));
  std::set<std::uint32_t> stored;
  for (std::size_t i = 0; i < launches.size(); ++i) {
    const Launch& launch = launches[i];
    std::set<std::uint32_t> here = MayWriteTo(execution, program, launch);
    std::erase_if(here, [&](std::uint32_t buffer) {
      return execution.buffers[buffer].role != BufferRole::kWorkspace;
    });
    for (const std::uint32_t buffer : here) {
      const bool is_used_later = std::ranges::any_of(
          launches.subspan(i + 1), [&](const Launch& later) { return UsesAny(later, {buffer}); });
      if (!launch.only.empty() && stored.contains(buffer) && is_used_later) return true;
    }
    stored.merge(here);
  }
  return false;
}

std::optional<std::size_t> CutToSums(Execution& execution, const facts::Facts* program,
                                     bool last_block_only) {
  const std::uint64_t few = last_block_only ? kFew : kWholeGrid;
  std::vector<std::size_t> cut;
  for (std::size_t i = 0; i < execution.launches.size(); ++i) {
    const Launch& launch = execution.launches[i];
    const bool adds = cut.empty() && Blocks(launch) > few && IsAlone(launch) &&
                      facts::OnlyAdds(program, launch.entry) &&
                      HandsOnSumsAlone(execution, *program, i);
    if (!adds && Blocks(launch) <= kWholeGrid) continue;
    if (!adds && (cut.empty() || MayCut(execution, program, i) != Cut::kIndependent))
      return std::nullopt;
    cut.push_back(i);
  }
  if (cut.empty()) return std::nullopt;
  for (const std::size_t i : cut) {
    const std::uint64_t blocks = Blocks(execution.launches[i]);
    const std::uint64_t count = last_block_only ? 1 : 2;
    execution.launches[i].only = {{blocks - count, count}};
  }
  return cut.front();
}

std::optional<std::set<std::uint32_t>> CutBesideSums(Execution& execution,
                                                     const facts::Facts* program,
                                                     bool last_block_only) {
  const std::uint64_t whole = last_block_only ? kFew : kWholeGrid;
  std::set<std::uint32_t> parts;
  std::vector<Launch> kept;
  for (std::size_t i = 0; i < execution.launches.size(); ++i) {
    const Launch& launch = execution.launches[i];
    const bool is_cut = Blocks(launch) > whole;
    const bool adds = is_cut && IsAlone(launch) && facts::OnlyAdds(program, launch.entry) &&
                      HandsOnSumsAlone(execution, *program, i);
    if (adds) {
      if (!StoredTo(*program, launch.entry, /*additions_count=*/true) || UsesAny(launch, parts))
        return std::nullopt;
      // Also what it stores to besides: who adds to the ends of its share and stores between leaves both in one.
      parts.merge(BuffersOf(launch, AddedTo(*program, launch.entry)));
    } else if (UsesAny(launch, parts)) {
      parts.merge(MayWriteTo(execution, program, launch));
      continue;
    } else if (is_cut && MayCut(execution, program, i) != Cut::kIndependent) {
      return std::nullopt;
    }
    kept.push_back(launch);
  }
  if (parts.empty()) return std::nullopt;
  execution.launches = std::move(kept);
  LeaveEnds(execution, last_block_only);
  return parts;
}

std::vector<std::size_t> LaunchesThatHangOn(const Execution& execution, const facts::Facts* program,
                                            std::set<std::uint32_t> buffers) {
  std::vector<std::size_t> all(execution.launches.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  if (program == nullptr || !program->fault.empty()) return all;
  std::vector<std::size_t> again;
  std::set<std::uint32_t> stored;
  for (const std::size_t i : all) {
    const Launch& launch = execution.launches[i];
    if (!UsesAny(launch, buffers)) continue;
    const auto arguments = StoredTo(*program, launch.entry, /*additions_count=*/true);
    if (!arguments) return all;
    again.push_back(i);
    stored.merge(BuffersOf(launch, *arguments));
    buffers.insert(stored.begin(), stored.end());
  }
  const bool apart = std::ranges::all_of(all, [&](std::size_t i) {
    return std::ranges::binary_search(again, i) || !UsesAny(execution.launches[i], stored);
  });
  return apart ? again : all;
}

}  // namespace assay::engine
