// The buffers of an execution in a GPU's memory, with guard zones.
//
// All lie in one slab: guard, buffer, guard, buffer, ... A guard is kGuardBytes or more of one byte
// value; whoever writes past a buffer changes it, and is found afterwards. What is read past a
// buffer is a large negative number in every floating-point format. Buffers that take over an
// earlier one's address (BufferSpec::reuse) move into its place when their launch comes.
//
//   DeviceMemory memory(driver);
//   ASSAY_TRY_VOID(memory.Lay(execution.buffers, host));
//   memory.Enter(launch, execution.launches[launch].fresh);   // before each launch
//   ASSAY_TRY_VOID(memory.Leave(findings));                    // after the last one
//
// One thread; the context must be current. Cost: copying the buffers there and back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "validator/execution/execution.h"
#include "validator/gpu/driver.h"

namespace assay::gpu {

/// A call of the driver that failed.
struct DriverFault {
  int code = kSuccess;
  const char* call = "";
};
using Outcome = std::optional<DriverFault>;

class DeviceMemory {
 public:
  static constexpr std::uint64_t kGuardBytes = 4096;
  static constexpr std::byte kGuard{0xfd};

  explicit DeviceMemory(const Driver& driver) : driver_(driver) {}
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  /// From now on every place is an allocation of its own without guards, and what begins undefined is
  /// left so: then a tool that watches the process (compute-sanitizer) sees what is nobody's and what
  /// nobody has written. It is the tool that says so; Leave does not.
  void LieApart(bool apart) { apart_ = apart; }

  /// The slab went with the context that it was in.
  void Forget() { slab_ = 0, capacity_ = 0, alone_.clear(); }

  /// Room for all buffers. Nothing is copied yet.
  Outcome Lay(std::span<const BufferSpec> specs, std::span<const std::span<std::byte>> host);
  /// Before launch `number`: buffers whose lives begin now are put in place, those in `fresh` are
  /// filled anew. Buffers whose place is taken are copied back first.
  Outcome Enter(std::uint32_t number, std::span<const std::uint32_t> fresh,
                std::vector<Finding>& findings);
  /// Copies back outputs, and says what was written without.
  Outcome Leave(std::vector<Finding>& findings);

  /// A buffer's first content again, outside of the lives that Enter counts.
  Outcome Refill(std::uint32_t buffer) { return Fill(buffer); }
  /// What a buffer holds now. `to` has its size.
  Outcome Read(std::uint32_t buffer, std::span<std::byte> to) const;

  DeviceAddress AddressOf(std::uint32_t buffer) const { return placed_[buffer].address; }
  std::uint64_t BytesOf(std::uint32_t buffer) const { return placed_[buffer].bytes; }
  std::uint64_t slab_bytes() const { return needed_; }

 private:
  struct Place {
    std::uint64_t offset = 0;  ///< Of the first guard, in the slab.
    std::uint64_t bytes = 0;   ///< Guards and all.
    std::int64_t tenant = -1;  ///< Buffer that lies there.
  };
  struct Placed {
    std::size_t place = 0;
    DeviceAddress address = 0;
    std::uint64_t bytes = 0;
    bool lived = false;
  };
  Outcome Fill(std::uint32_t buffer);
  Outcome LayApart();
  Outcome MoveIn(std::uint32_t buffer, std::vector<Finding>& findings);
  Outcome MoveOut(std::uint32_t buffer, std::vector<Finding>& findings);
  Outcome CheckGuards(std::uint32_t buffer, std::vector<Finding>& findings);

  const Driver& driver_;
  bool apart_ = false;
  std::vector<DeviceAddress> alone_;  ///< A place's own allocation.
  DeviceAddress slab_ = 0;
  std::uint64_t capacity_ = 0;
  std::uint64_t needed_ = 0;
  std::span<const BufferSpec> specs_;
  std::span<const std::span<std::byte>> host_;
  std::vector<Place> places_;
  std::vector<Placed> placed_;
};

}  // namespace assay::gpu
