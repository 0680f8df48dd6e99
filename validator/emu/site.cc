#include "validator/emu/site.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "validator/emu/launch_shape.h"
#include "validator/emu/memory.h"
#include "validator/ptx/isa.h"

namespace assay::emu {
namespace {

using ptx::Space;

/// Rounds towards minus infinity, so that the byte before an array is element -1.
std::int64_t FloorDiv(std::int64_t value, std::int64_t divisor) {
  const std::int64_t quotient = value / divisor;
  return value % divisor < 0 ? quotient - 1 : quotient;
}

std::string_view SpaceName(MemoryRegion::Kind kind) {
  switch (kind) {
    case MemoryRegion::Kind::kConst:
      return "const";
    case MemoryRegion::Kind::kParams:
      return "param";
    case MemoryRegion::Kind::kShared:
      return "shared";
    default:
      return "global";
  }
}

/// The lines of the user's file that `frame`, a frame of `index`, was inlined into, innermost first.
std::vector<std::uint32_t> CallsAround(const ptx::Module& module, std::int32_t index,
                                       const ptx::SourceLocation& frame) {
  std::vector<std::uint32_t> lines;
  bool within = false;
  while (index >= 0 && static_cast<std::size_t>(index) < module.locations.size() &&
         lines.size() < kMostCallSites) {
    const ptx::SourceLocation& at = module.locations[static_cast<std::size_t>(index)];
    if (within && at.file == frame.file && at.line != 0) lines.push_back(at.line);
    within = within || (at.file == frame.file && at.line == frame.line);
    // The parser links a location only to an older one.
    if (at.inlined_at >= index) break;
    index = at.inlined_at;
  }
  return lines;
}

}  // namespace

int FirstLane(LaneMask lanes) { return std::countr_zero(lanes); }

SourcePlace SourcePlaceOf(const Device& device, std::uint32_t pc) {
  SourcePlace place;
  if (pc >= device.program.code.size()) return place;
  // Compilers mark code that they moved as line 0: the nearest line before it tells more.
  const std::uint32_t first = device.program.functions[device.program.function_of[pc]].first_pc;
  for (std::uint32_t at = pc + 1; at-- > first && place.line == 0;) {
    const std::int32_t index = device.program.InstructionAt(at).location;
    if (index < 0) break;
    const ptx::SourceLocation location = ptx::UserFrame(device.program.module, index);
    if (location.file < device.program.module.files.size()) {
      // Line information may carry any directory; people know the file by its name.
      const std::string_view path = device.program.module.files[location.file];
      place.file = path.substr(path.rfind('/') + 1);
    }
    place.line = location.line;
    place.column = location.column;
    if (place.line != 0) place.location = index;
  }
  return place;
}

SourceSite SiteOf(const Device& device, std::uint32_t pc) {
  SourceSite site;
  if (pc >= device.program.code.size()) return site;
  const ptx::Instruction& in = device.program.InstructionAt(pc);
  const SourcePlace place = SourcePlaceOf(device, pc);
  site.ptx_line = in.ptx_line;
  site.instruction = device.program.Line(in.ptx_line);
  site.file = place.file;
  site.line = place.line;
  site.column = place.column;
  if (place.location >= 0) {
    const ptx::Module& module = device.program.module;
    site.called_at = CallsAround(module, place.location, ptx::UserFrame(module, place.location));
  }
  return site;
}

std::string LineOf(const Device& device, std::uint32_t pc) {
  const SourceSite site = SiteOf(device, pc);
  return site.line != 0 ? fmt::format("line {}", site.line)
                        : fmt::format("PTX line {}", site.ptx_line);
}

ThreadId ThreadOf(const Device& device, BlockNumber block, std::uint32_t warp_in_block, int lane) {
  const LaunchState& launch = device.launch;
  const std::uint32_t thread = warp_in_block * kWarpSize + static_cast<std::uint32_t>(lane);
  return {BlockId(launch, block),
          {thread % launch.block[0], thread / launch.block[0] % launch.block[1],
           thread / launch.block[0] / launch.block[1]}};
}

ThreadId ThreadOf(const CoreWarp& warp, int lane) {
  return ThreadOf(*warp.device, warp.block->number, warp.index, lane);
}

MemoryPlace PlaceIn(const MemoryRegion& region, std::string_view space, std::uint64_t address,
                    std::uint32_t bytes) {
  MemoryPlace place;
  place.space = space;
  place.buffer = region.name;
  place.address = address;
  place.bytes = bytes;
  // PTX declares most variables as bytes: the access tells what they hold.
  const std::uint32_t access = bytes == 0 || bytes > 8 ? 4 : bytes;
  const std::uint32_t element =
      region.element_bytes > 1 || region.kind == MemoryRegion::Kind::kBuffer ? region.element_bytes
                                                                             : access;
  place.elements = region.size / element;
  place.index = FloorDiv(static_cast<std::int64_t>(address - region.base), element);
  return place;
}

MemoryPlace PlaceOf(const CoreWarp& warp, Space space, std::uint64_t address, int lane,
                    std::uint32_t bytes) {
  MemoryPlace place;
  place.address = address;
  place.bytes = bytes;
  const bool shared = space == Space::kShared || space == Space::kSharedCta ||
                      space == Space::kSharedCluster ||
                      (space == Space::kGeneric && (address & kWindowMask) == kSharedWindow);
  const bool local = space == Space::kLocal ||
                     (space == Space::kParam && address < (std::uint64_t{1} << kAllocationBits)) ||
                     (space == Space::kGeneric && (address & kWindowMask) == kLocalWindow);
  if (shared) {
    place.space = "shared";
    if (const MemoryRegion* const region = SharedRegion(*warp.block, address & 0xffffffffu)) {
      return PlaceIn(*region, "shared", address & kSharedOffsetMask, bytes);
    }
    return place;
  }
  if (local) {
    place.space = "local";
    const std::uint64_t at = address & ~kWindowMask;
    const FunctionCode& code = warp.device->program.functions[warp.frame->function];
    const std::uint64_t base = warp.frame->base[static_cast<std::size_t>(lane)];
    // The variable that the address follows most closely.
    for (std::size_t i = 0; i < code.variables.size(); ++i) {
      const PlacedVariable& variable = code.variables[i];
      if (variable.where != PlacedVariable::Where::kFrame ||
          base + variable.offset > at + kFrameGap)
        continue;
      place.buffer = SourceName(code.function->variables[i].name);
      const std::uint32_t element = bytes == 0 || bytes > 8 ? 4 : bytes;
      place.elements = variable.bytes / element;
      place.index = FloorDiv(static_cast<std::int64_t>(at - (base + variable.offset)), element);
    }
    for (const StackBlock& block : warp.frame->blocks) {
      if (block.lane != static_cast<std::uint32_t>(lane) || block.start > at + kFrameGap) continue;
      place.buffer = "alloca";
      const std::uint32_t element = bytes == 0 || bytes > 8 ? 4 : bytes;
      place.elements = block.bytes / element;
      place.index = FloorDiv(static_cast<std::int64_t>(at - block.start), element);
    }
    return place;
  }
  place.space = space == Space::kConst ? "const" : space == Space::kParam ? "param" : "global";
  const MemoryRegion* const region = GenericRegion(*warp.device, address);
  return region == nullptr ? place : PlaceIn(*region, SpaceName(region->kind), address, bytes);
}

std::string VerbOf(const ptx::Instruction& in) {
  const ptx::Form& form = ptx::FormOf(in);
  switch (form.rules.shadow) {
    case ptx::Shadow::kLoad:
    case ptx::Shadow::kStore:
    case ptx::Shadow::kRows:
    case ptx::Shadow::kFragment:
      return ptx::WritesMemory(form) ? "write" : "read";
    case ptx::Shadow::kAtomic:
      for (const ptx::Mod mod :
           {ptx::Mod::kAdd, ptx::Mod::kMin, ptx::Mod::kMax, ptx::Mod::kInc, ptx::Mod::kDec,
            ptx::Mod::kExch, ptx::Mod::kCas, ptx::Mod::kAnd, ptx::Mod::kOr, ptx::Mod::kXor}) {
        if (in.Has(mod)) return fmt::format("atomic {}", ptx::Name(mod));
      }
      return "atomic";
    default:
      return std::string(ptx::Mnemonic(in.opcode));
  }
}

void Report1(CoreWarp& warp, FindingKind kind, std::uint32_t pc, LaneMask lanes,
             std::string message, std::string what, std::optional<MemoryPlace> memory,
             std::string missing, std::string cause, std::uint32_t other_pc) {
  Finding finding;
  finding.kind = kind;
  finding.message = std::move(message);
  Access access;
  access.what = std::move(what);
  access.site = SiteOf(*warp.device, pc);
  access.thread = ThreadOf(warp, lanes == 0 ? 0 : FirstLane(lanes));
  access.threads = static_cast<std::uint64_t>(std::popcount(lanes));
  finding.accesses.push_back(std::move(access));
  finding.memory = std::move(memory);
  finding.missing = std::move(missing);
  finding.cause = std::move(cause);
  warp.device->findings.Add(std::move(finding), pc, other_pc);
}

void NoteUndefinedRead(CoreWarp& warp, const Decoded& op, Space space, std::uint64_t address,
                       int lane, std::uint32_t bytes) {
  std::map<std::uint32_t, std::string>& reads = warp.device->undefined_reads;
  const std::uint32_t pc = warp.PcOf(op);
  if (reads.contains(pc)) return;
  const MemoryPlace place = PlaceOf(warp, space, address, lane, bytes);
  reads[pc] = place.buffer.empty() ? fmt::format("{} memory at {:#x}", place.space, place.address)
                                   : fmt::format("{}[{}]", place.buffer, place.index);
}

void ReportUndefined(CoreWarp& warp, std::uint32_t pc, LaneMask lanes, std::string message,
                     std::string what, std::uint32_t origin, std::optional<MemoryPlace> memory) {
  std::string missing = "a value: the register was never written";
  if (origin != kNoPc) {
    const auto place = warp.device->undefined_reads.find(origin);
    missing = place == warp.device->undefined_reads.end()
                  ? fmt::format("the undefined bytes were read at {}", LineOf(*warp.device, origin))
                  : fmt::format("a value for {}, which was read at {}", place->second,
                                LineOf(*warp.device, origin));
  }
  Report1(warp, FindingKind::kUninitialisedUse, pc, lanes, std::move(message), std::move(what),
          std::move(memory), std::move(missing), {}, origin);
}

bool FindingSink::Add(Finding finding, std::uint32_t pc, std::uint32_t other_pc) {
  if (only_races_ && FamilyOf(finding.kind) != "race") return false;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i].kind != finding.kind || entries_[i].pc != pc ||
        entries_[i].other_pc != other_pc)
      continue;
    for (std::size_t side = 0;
         side < std::min(findings_[i].accesses.size(), finding.accesses.size()); ++side) {
      findings_[i].accesses[side].threads += finding.accesses[side].threads;
    }
    return false;
  }
  if (findings_.size() >= limit_) return false;
  entries_.push_back({finding.kind, pc, other_pc});
  findings_.push_back(std::move(finding));
  return true;
}

std::vector<Finding> FindingSink::Take() {
  // Undefined bytes that a race explains are the race's: without it they would have been written in
  // time.
  for (std::size_t i = findings_.size(); i-- > 0;) {
    if (entries_[i].kind != FindingKind::kUninitialisedUse || entries_[i].other_pc == kNoPc)
      continue;
    const bool raced = std::ranges::any_of(entries_, [&](const Entry& other) {
      return other.kind == FindingKind::kDataRace &&
             (other.pc == entries_[i].other_pc || other.other_pc == entries_[i].other_pc);
    });
    if (!raced) continue;
    findings_.erase(findings_.begin() + static_cast<std::ptrdiff_t>(i));
    entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  SortAndMerge(findings_);
  return std::move(findings_);
}

void Device::End(Stop why, std::string because) {
  if (stopped) return;
  stopped = true;
  stop = why;
  reason = std::move(because);
}

void Device::NoteMeeting() {
  counters.may_meet = true;
  if (execution.ends_at_meetings) End(Stop::kStepLimit, "blocks may meet here");
}

}  // namespace assay::emu
