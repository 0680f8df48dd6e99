// What the blocks of a launch that ran did to the machine: instructions by unit, sectors, conflicts,
// and how long a warp waits for itself. Counted by the emulator (emu/watch/costs.h), read by the cost
// model (validator/cost), which extends it to whole grids and named chips.
//
// Values with one JSON form; no behaviour. An instruction counts once a warp, whatever its lanes;
// where the machine has no instruction for what PTX calls one (a division, a sum of 64 bits), as many
// as it takes there, roughly.
//
// What comes from a worker is read strictly and believed no further: figures may be any.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/fields.h"
#include "validator/findings/finding.h"

namespace assay {

/// The unit that an instruction occupies.
enum class Pipe : std::uint8_t {
  kFma,      ///< f32 sums and products; integer products.
  kAlu,      ///< Integers, logic, comparisons, selections, minima.
  kHalf,     ///< f16 and bf16, one or a pair.
  kDouble,   ///< f64.
  kSpecial,  ///< Reciprocals, roots, exponentials, sines.
  kConvert,  ///< Between formats.
  kShuffle,  ///< Between lanes.
  kMemory,   ///< Loads, stores, atomics, asynchronous copies.
  kMatrix,   ///< Products of matrices.
  kControl,  ///< Branches, barriers, fences.
};
inline constexpr std::size_t kPipeCount = static_cast<std::size_t>(Pipe::kControl) + 1;

/// Operands of a product of matrices.
enum class MatrixType : std::uint8_t { kHalf, kTf32, kByte, kDouble, kSmall };
inline constexpr std::size_t kMatrixTypeCount = static_cast<std::size_t>(MatrixType::kSmall) + 1;

/// Accesses of warps to global memory. A request is one instruction of one warp.
struct GlobalTraffic {
  std::uint64_t requests = 0;
  std::uint64_t lanes = 0;    ///< Accesses of single lanes.
  std::uint64_t bytes = 0;    ///< That lanes asked for.
  std::uint64_t sectors = 0;  ///< Different 32-byte sectors of a request, added up.
  std::uint64_t lines = 0;    ///< Different 128-byte lines of a request, added up.
  bool operator==(const GlobalTraffic&) const = default;
};

/// Accesses of warps to shared memory. A wavefront is one pass over the 32 banks of four bytes.
struct SharedTraffic {
  std::uint64_t requests = 0;
  std::uint64_t bytes = 0;
  std::uint64_t wavefronts = 0;
  std::uint64_t least_wavefronts = 0;  ///< The same bytes without a conflict.
  bool operator==(const SharedTraffic&) const = default;
};

/// Sectors of one buffer: what each block touched, added up, and what all of them touched together.
/// Where both are equal no block touches what another one does.
struct BufferTraffic {
  std::uint32_t buffer = 0;  ///< Index into Execution::buffers.
  std::uint64_t read_by_block = 0;
  std::uint64_t read = 0;
  std::uint64_t written_by_block = 0;
  std::uint64_t written = 0;
  bool operator==(const BufferTraffic&) const = default;
};

/// A place of the source where lanes ask for what lies apart, or meet in banks.
struct CostlySite {
  SourceSite site;
  bool shared = false;  ///< Bank conflicts; else sectors of global memory.
  std::uint64_t requests = 0;
  std::uint64_t units = 0;  ///< Sectors, or wavefronts.
  std::uint64_t least = 0;  ///< As many as the bytes need.
  bool operator==(const CostlySite&) const = default;
};

struct LaunchCounts {
  std::uint64_t blocks = 0;               ///< That ran.
  std::uint64_t warps = 0;                ///< Of them together.
  std::uint64_t warp_instructions = 0;    ///< As the machine issues them.
  std::uint64_t thread_instructions = 0;  ///< PTX instructions of single lanes.
  std::uint64_t barriers = 0;             ///< Of warps: arrivals.
  std::array<std::uint64_t, kPipeCount> pipes{};
  /// Multiplications, by type; those of wgmma apart.
  std::array<std::uint64_t, kMatrixTypeCount> products{};
  std::array<std::uint64_t, kMatrixTypeCount> group_products{};
  GlobalTraffic loads;
  GlobalTraffic stores;
  GlobalTraffic atomics;
  GlobalTraffic local;  ///< Arrays of threads that lie in memory; spills are not seen in PTX.
  SharedTraffic shared;
  std::uint64_t missed_sectors = 0;  ///< Of loads, that a block's share of L1 did not hold.
  std::uint64_t same_place = 0;      ///< Atomics of a warp that wait for a lane of their own warp.
  /// Cycles from a block's first instruction to its last where nothing but its own latencies holds it
  /// up: added up over blocks, and the longest.
  std::uint64_t path_cycles = 0;
  std::uint64_t longest_path = 0;
  std::vector<BufferTraffic> buffers;
  std::vector<CostlySite> sites;         ///< The worst ones, worst first.
  std::vector<std::string> not_counted;  ///< Instructions whose memory is not followed.
  bool operator==(const LaunchCounts&) const = default;
};

/// What counting has to know of the chip.
struct CountOptions {
  std::vector<std::uint64_t> l1_bytes;  ///< By launch: a block's share of its multiprocessor's L1.
  // Cycles until a result can be used.
  std::uint32_t arithmetic = 4;
  std::uint32_t special = 18;
  std::uint32_t matrix = 32;
  std::uint32_t shared = 29;
  std::uint32_t l1 = 41;
  std::uint32_t l2 = 263;
  std::uint32_t dram = 479;
  std::uint32_t barrier = 20;
};

constexpr std::array<std::string_view, kPipeCount> JsonWords(const Pipe*) {
  return {"fma",     "alu",     "half",   "double", "special",
          "convert", "shuffle", "memory", "matrix", "control"};
}
constexpr std::array<std::string_view, kMatrixTypeCount> JsonWords(const MatrixType*) {
  return {"half", "tf32", "byte", "double", "small"};
}
constexpr std::string_view Name(Pipe pipe) {
  return JsonWords(static_cast<const Pipe*>(nullptr))[static_cast<std::size_t>(pipe)];
}
constexpr std::string_view Name(MatrixType type) {
  return JsonWords(static_cast<const MatrixType*>(nullptr))[static_cast<std::size_t>(type)];
}

template <>
struct JsonForm<SourceSite> : JsonThrough<&SourceSiteFromJson> {};

constexpr auto JsonFields(const GlobalTraffic*) {
  using T = GlobalTraffic;
  return std::tuple(Required("requests", &T::requests), Required("lanes", &T::lanes),
                    Required("bytes", &T::bytes), Required("sectors", &T::sectors),
                    Required("lines", &T::lines));
}
constexpr auto JsonFields(const SharedTraffic*) {
  using T = SharedTraffic;
  return std::tuple(Required("requests", &T::requests), Required("bytes", &T::bytes),
                    Required("wavefronts", &T::wavefronts),
                    Required("least_wavefronts", &T::least_wavefronts));
}
constexpr auto JsonFields(const BufferTraffic*) {
  using T = BufferTraffic;
  return std::tuple(Required("buffer", &T::buffer), Required("read_by_block", &T::read_by_block),
                    Required("read", &T::read), Required("written_by_block", &T::written_by_block),
                    Required("written", &T::written));
}
constexpr auto JsonFields(const CostlySite*) {
  using T = CostlySite;
  return std::tuple(Required("site", &T::site), Required("shared", &T::shared),
                    Required("requests", &T::requests), Required("units", &T::units),
                    Required("least", &T::least));
}
constexpr auto JsonFields(const LaunchCounts*) {
  using T = LaunchCounts;
  return std::tuple(
      Required("blocks", &T::blocks), Required("warps", &T::warps),
      Required("warp_instructions", &T::warp_instructions),
      Required("thread_instructions", &T::thread_instructions), Required("barriers", &T::barriers),
      Required("pipes", &T::pipes), Required("products", &T::products),
      Required("group_products", &T::group_products), Required("loads", &T::loads),
      Required("stores", &T::stores), Required("atomics", &T::atomics),
      Required("local", &T::local), Required("shared", &T::shared),
      Required("missed_sectors", &T::missed_sectors), Required("same_place", &T::same_place),
      Required("path_cycles", &T::path_cycles), Required("longest_path", &T::longest_path),
      Required("buffers", &T::buffers), Required("sites", &T::sites),
      Required("not_counted", &T::not_counted));
}
constexpr auto JsonFields(const CountOptions*) {
  using T = CountOptions;
  return std::tuple(Required("l1_bytes", &T::l1_bytes), Required("arithmetic", &T::arithmetic),
                    Required("special", &T::special), Required("matrix", &T::matrix),
                    Required("shared", &T::shared), Required("l1", &T::l1), Required("l2", &T::l2),
                    Required("dram", &T::dram), Required("barrier", &T::barrier));
}

}  // namespace assay
