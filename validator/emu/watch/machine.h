// What the machine chooses, and where it shows.
//
// A kernel may use addresses to reach memory, to compare and subtract within one object, and to look
// at the low bits that an alignment promises; it may read %smid. But nothing that it computes may
// depend on where objects lie, where and when blocks run, or how large the machine is. So such
// values are *undefined except for their purpose*: registers hold them with the bits that the
// machine chooses marked undefined (undefined.h), in a class of their own, Frame::machine. That
// class may be moved about, stored, loaded (machine_memory.h) and used as an address; where it
// reaches an output of the op, or decides a branch one of whose sides does something that lasts
// (choice.h), there is a finding, machine_dependent.
//
// Where the class comes from:
//   boundaries (machine_flow.h)  instructions that use an address for more than its purpose, or read
//                 a special register that the machine chooses; found when the module is loaded
//   memory        bytes of stored addresses and of parameters that no one uses as addresses
//   approximations  the last bits of ex2.approx and its like, where they are cut out or compared
//                 with a constant next to them; as parts of numbers they are what the error bounds
//                 allow
//   places        what is read at an index that the machine chose is its choice too
//   paths         what is computed on one side of a branch that it decides
//
// Cost: nothing for kernels without boundaries, and nothing for instructions that are none. Not
// thread-safe.
#pragma once

#include <string>

#include "validator/emu/core.h"
#include "validator/emu/memory.h"

namespace assay::emu {

/// Boundary::Source::kinds of what approximate functions gave, beside AddressKind. Their error
/// bounds leave the last kApproximateTail bits of a result to the chip; kApproximateTail minus the
/// number in the upper half of the byte is how many of them are left after shifts.
inline constexpr std::uint8_t kApproximateBits = 8;
/// The same, compared with a constant that is no round number.
inline constexpr std::uint8_t kApproximateValue = 9;
inline constexpr int kApproximateTail = 4;

/// Decoded::monitored of a boundary: marks the chosen bits of its sources, runs it, and takes the
/// marks away.
void RunBoundary(Warp& warp, const Decoded& op);
/// Decoded::run of a boundary that reads a clock.
void ReadClock(Warp& warp, const Decoded& op);

/// Lanes of a register that hold what the machine chose.
inline LaneMask ChosenLanes(const Frame& frame, std::uint32_t shadow) {
  return frame.undefined[shadow] & frame.machine[shadow];
}
/// Lanes of a register that are not initialised.
inline LaneMask UnsetLanes(const Frame& frame, std::uint32_t shadow) {
  return frame.undefined[shadow] & ~frame.machine[shadow];
}
/// `lanes` of a register hold the machine's choice, all of their bits.
void SetChosen(Frame& frame, std::uint32_t shadow, LaneMask lanes, std::uint32_t origin);

/// For results that come from lanes of `source` (shuffles, votes): what a target, whose undefined
/// lanes are set already, says of their class. Looked up before the target is written.
class ChoiceOf {
 public:
  ChoiceOf(const Frame& frame, const DecodedOperand& source);
  void Pass(Frame& frame, const DecodedOperand& target, LaneMask lanes) const;

 private:
  bool chosen_ = false;
  std::uint32_t origin_ = kNoPc;
};

/// Was it a shared address that gave the choice of `origin`, as far as is known? Swizzles by the
/// bits of one are the same wherever the array lies.
bool MayBeOfSharedAddress(const Device& device, std::uint32_t origin);
/// Says what the machine chose at `pc`, for reports. Once said it stays, but that an instruction which
/// has met a shared address is one of those.
void NameChoice(CoreWarp& warp, std::uint32_t pc, MachineChoice choice);
/// Reports that what `origin` gave decides something: `sink` says what ("the output y[3] depends").
void ReportChoice(CoreWarp& warp, std::uint32_t pc, LaneMask lanes, const std::string& sink,
                  std::string what, std::uint32_t origin,
                  std::optional<MemoryPlace> memory = std::nullopt);

}  // namespace assay::emu
