// What a GPU is asked about speed, and what it answers. Values with one JSON form each.
//
// A kernel is timed over slots: calls of one execution, each with launches, inputs, outputs and
// workspace of its own, equally many. Every slot is timed once a round, in an order that the seed
// says. Before each call its outputs and workspace are what they were at first and the caches hold
// nothing of it; after each call all its outputs are looked at. So nothing that a call leaves behind
// helps a later one, and what was not computed is seen.
//
// Used on both sides of the jail, as execution.h is.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/fields.h"

namespace assay {

struct TimingPlan {
  std::uint32_t slots = 1;     ///< The execution's launches and buffers are divided among them.
  std::uint32_t warm_ups = 3;  ///< Calls before the first timed one.
  std::uint32_t rounds = 5;
  std::uint64_t seed = 0;
  double most_seconds = 2;  ///< Of timed calls together; what is left of the round is still timed.
};
constexpr auto JsonFields(const TimingPlan*) {
  return std::tuple(Required("slots", &TimingPlan::slots),
                    Required("warm_ups", &TimingPlan::warm_ups),
                    Required("rounds", &TimingPlan::rounds), Required("seed", &TimingPlan::seed),
                    Required("most_seconds", &TimingPlan::most_seconds));
}

struct TimedCall {
  std::uint32_t slot = 0;
  double seconds =
      0;  ///< From before the first launch (and the zeros that the plan asks for) to the end of the last.
};
constexpr auto JsonFields(const TimedCall*) {
  return std::tuple(Required("slot", &TimedCall::slot), Required("seconds", &TimedCall::seconds));
}

/// The card, as its management library says. Zero: not known.
struct Conditions {
  std::uint32_t sm_mhz = 0;
  std::uint32_t memory_mhz = 0;
  double watts = 0;
  std::uint32_t celsius = 0;
  std::uint64_t throttle = 0;  ///< Reasons why clocks are lower than they could be, as bits.
  std::string unknown;         ///< Why nothing is known.
  bool operator==(const Conditions&) const = default;
};
constexpr auto JsonFields(const Conditions*) {
  return std::tuple(
      Required("sm_mhz", &Conditions::sm_mhz), Required("memory_mhz", &Conditions::memory_mhz),
      Required("watts", &Conditions::watts), Required("celsius", &Conditions::celsius),
      Required("throttle", &Conditions::throttle), Sparse("unknown", &Conditions::unknown));
}

struct Timing {
  std::vector<TimedCall> calls;  ///< In the order made.
  /// Slots whose outputs had other bits than the first time. The timing ends there, and the slot's
  /// buffers hold the later ones.
  std::vector<std::uint32_t> changed;
  Conditions before, after;
};
constexpr auto JsonFields(const Timing*) {
  return std::tuple(Required("calls", &Timing::calls), Required("changed", &Timing::changed),
                    Required("before", &Timing::before), Required("after", &Timing::after));
}

/// A matrix product of the vendor's library: c[m, n] = a[m, k] b[k, n], row-major, f32 accumulation.
struct MatrixProduct {
  std::string dtype = "bf16";  ///< bf16, f16 or f32 (no TF32).
  std::int64_t m = 1, n = 1, k = 1;
};
constexpr auto JsonFields(const MatrixProduct*) {
  return std::tuple(Required("dtype", &MatrixProduct::dtype), Required("m", &MatrixProduct::m),
                    Required("n", &MatrixProduct::n), Required("k", &MatrixProduct::k));
}

/// An operation on each row of a matrix, of the vendor's library of tensor operations: y from x, both
/// of `dtype`, what is added up in f32.
struct RowsPrimitive {
  std::string operation = "softmax";  ///< "softmax": of each row. "sum": of each row, y[rows].
  std::string dtype = "f32";          ///< bf16, f16 or f32.
  std::int64_t rows = 1, columns = 1;
};
constexpr auto JsonFields(const RowsPrimitive*) {
  return std::tuple(
      Required("operation", &RowsPrimitive::operation), Required("dtype", &RowsPrimitive::dtype),
      Required("rows", &RowsPrimitive::rows), Required("columns", &RowsPrimitive::columns));
}

struct MatrixRate {
  std::string dtype;
  double operations_per_second = 0;
};
constexpr auto JsonFields(const MatrixRate*) {
  return std::tuple(Required("dtype", &MatrixRate::dtype),
                    Required("operations_per_second", &MatrixRate::operations_per_second));
}

/// What a card can do, measured on it.
struct Rates {
  std::string device;
  double copy_bytes_per_second = 0;  ///< Bytes read and bytes written, of a large copy.
  double launch_seconds = 0;         ///< A kernel that does nothing, between two events.
  std::uint64_t l2_bytes = 0;
  std::uint64_t memory_bytes = 0;  ///< Free when asked.
  std::vector<MatrixRate> matrix;  ///< By the vendor's library.
  std::string no_matrix;           ///< Why `matrix` is empty.
  std::string tensors;             ///< "cuDNN 9.10.1"; empty where there is none,
  std::string no_tensors;          ///< and why.
  Conditions now;                  ///< Right behind the products.
};
constexpr auto JsonFields(const Rates*) {
  return std::tuple(
      Required("device", &Rates::device),
      Required("copy_bytes_per_second", &Rates::copy_bytes_per_second),
      Required("launch_seconds", &Rates::launch_seconds), Required("l2_bytes", &Rates::l2_bytes),
      Required("memory_bytes", &Rates::memory_bytes), Required("matrix", &Rates::matrix),
      Sparse("no_matrix", &Rates::no_matrix), Sparse("tensors", &Rates::tensors),
      Sparse("no_tensors", &Rates::no_tensors), Required("now", &Rates::now));
}

/// One call again and again, its outputs compared bit by bit with the first time's.
struct StressPlan {
  std::uint32_t repetitions = 50;
  /// What else the card does meanwhile. With kItself the execution holds two calls (two slots), which
  /// run at the same time on two streams.
  enum class Beside : std::uint8_t { kNothing, kItself, kBandwidth, kFewProcessors } beside{};
  bool graph = false;  ///< Recorded once and replayed.
};
inline std::span<const std::string_view> JsonWords(const StressPlan::Beside*) {
  static constexpr std::array<std::string_view, 4> kWords = {"nothing", "itself", "bandwidth",
                                                             "few_processors"};
  return kWords;
}
constexpr auto JsonFields(const StressPlan*) {
  return std::tuple(Required("repetitions", &StressPlan::repetitions),
                    Required("beside", &StressPlan::beside), Required("graph", &StressPlan::graph));
}

struct Stress {
  std::uint32_t made = 0;     ///< Repetitions.
  std::int64_t changed = -1;  ///< The first repetition with other bits; the buffers hold them.
  std::vector<std::uint32_t> slots;  ///< Which of the slots those are.
};
constexpr auto JsonFields(const Stress*) {
  return std::tuple(Required("made", &Stress::made), Required("changed", &Stress::changed),
                    Required("slots", &Stress::slots));
}

}  // namespace assay
