// What bulk copies, tensor copies, st.async and red.async share: one side of a transfer, checked, and
// the mbarrier that counts its bytes.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "validator/emu/memory.h"
#include "validator/emu/watch/copied_bytes.h"

namespace assay::emu {

/// A misuse that no execution survives: a finding, and the end of the run.
void BulkMisuse(CoreWarp& warp, const Decoded& op, int lane, std::string message);

/// One side of a copy, by one lane.
struct Side {
  LaneAccess access;
  WarpAccess event;
  alignas(64) std::uint64_t offsets[kWarpSize] = {};
};

/// Finds [address, address + bytes) and checks it. False: a finding was recorded and the run is over.
bool ResolveSide(CoreWarp& warp, const Decoded& op, ptx::Space space, std::uint64_t address,
                 int lane, std::uint32_t bytes, bool writes, Side& side,
                 std::uint32_t alignment = 16);

/// What is known of `bytes` that a lane's side holds; `from` says whether the machine chose the side.
CopiedBytes BytesTaken(CoreWarp& warp, const ChosenPlaces& from, const Side& side, int lane,
                       std::uint32_t bytes);
/// Marks `bytes` of a lane's side as written; `to` says whether the machine chose the side.
void PutCopied(CoreWarp& warp, const Decoded& op, const ChosenPlaces& to, const Side& side,
               int lane, std::uint32_t bytes, const CopiedBytes& copied);

/// What an address operand gives a lane.
std::uint64_t BulkAddress(CoreWarp& warp, const DecodedOperand& operand, int lane);

/// The same shared address in block `rank` of the cluster.
std::uint64_t InBlock(std::uint64_t address, std::uint32_t rank);

/// The mbarrier at `address` counts `bytes` as arrived, which the detector's `tokens` stand for.
/// False: the run is over.
bool CompleteTransfer(CoreWarp& warp, const Decoded& op, int lane, std::uint64_t address,
                      std::uint32_t bytes, std::span<const std::uint64_t> tokens);

}  // namespace assay::emu
