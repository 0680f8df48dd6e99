// From the race detector's records to findings that name both sides.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "validator/emu/core.h"

namespace assay::emu {

/// Adds a finding for every race that the detector has found since the last call. Called while the
/// launch's state still stands.
void ReportRaces(Device& device);

/// What an access at line `to` lacks that has not acquired what follows the one at `from`. `who`:
/// what its thread is called.
std::string MissingAcquire(const Device& device, const OrderGap& gap, const std::string& from,
                           const std::string& to, std::string_view who);

/// Accesses by which a store may be meant to be handed to a load in another block: the first strong
/// store or atomic behind the one, and the last strong load or atomic, of which the result is used,
/// before the other.
struct Signal {
  std::uint32_t write_pc = kNoPc;
  std::uint32_t read_pc = kNoPc;
  bool fenced = false;  ///< A fence stands between `read_pc` and the load.
};
/// By the order of the code; nothing where one of the two is missing. An atomic alone is no signal,
/// and orders nothing.
std::optional<Signal> SignalBetween(const Device& device, std::uint32_t from, std::uint32_t to);

/// What lacks between a store at `from_pc` and an access at `to_pc` that has not seen it released:
/// the fence behind the store, and the reader's, where there is none.
std::string MissingRelease(const Device& device, const OrderGap& gap, std::uint32_t from_pc,
                           std::uint32_t to_pc, std::string_view who);

}  // namespace assay::emu
