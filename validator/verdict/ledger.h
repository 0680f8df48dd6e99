// The ledger of a judgement: every case that was planned, and what became of it.
//
// A case is examined, or left out for a reason that stands here; nothing else. So for each wave
//
//   planned == examined + the counts of left_out
//
// once the judgement has ended. Beside the cases: how long each axis was tried, whole, in slices and
// at the ends of huge shapes, how many blocks of each kernel ran, and which branches no case reached. It stands in verdict.json, in the
// certificate and on the terminal: `accepted` without a word about what was left out would be a lie.
//
// A value with one JSON form. Cost: one entry for each wave and reason, not for each case.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace assay::verdict {

/// Cases of one wave that taught nothing, for one reason.
struct LeftOut {
  std::string reason;
  std::string example;  ///< The first of them, or what else would have been tried.
  std::uint64_t count = 0;
  bool operator==(const LeftOut&) const = default;
};

struct LedgerRow {
  std::string wave;  ///< "smoke", "aimed", "property independent_rows x rows", "holdout"
  std::uint64_t planned = 0;
  std::uint64_t examined = 0;
  std::vector<LeftOut> left_out;
  bool operator==(const LedgerRow&) const = default;
};

/// How long an axis was tried. Elements.
struct AxisReach {
  std::string axis;
  std::int64_t whole = 0;      ///< The longest of a case that ran whole; 0: none.
  std::int64_t in_slices = 0;  ///< The longest of one of which some blocks ran; 0: none.
  std::int64_t at_ends = 0;    ///< The longest of one of which only the ends ran; 0: none.
  std::int64_t domain = 0;     ///< The longest that the op allows.
  std::int64_t in_places =
      0;  ///< The longest of one of which it was seen where it is written to, not what; 0: none.
  bool operator==(const AxisReach&) const = default;
};

/// How much of a kernel's launches ran. Blocks.
struct LaunchReach {
  std::string entry;
  std::uint64_t whole = 0;  ///< Of the largest launch all of which ran,
  std::uint64_t run = 0;    ///< and of the largest one of which a slice ran: those that did,
  std::uint64_t all = 0;    ///< of these.
  bool operator==(const LaunchReach&) const = default;
};

/// How a case ran.
enum class Extent : std::uint8_t { kWhole, kSlice, kEnds, kPlaces };

/// A side of a branch in the source that no case reached.
struct Unreached {
  std::string what;          ///< "kernel.cu:14: the branch, taken"
  std::uint64_t copies = 1;  ///< Of it in the PTX: loops are unrolled, templates instantiated.
  bool operator==(const Unreached&) const = default;
};

class Ledger {
 public:
  void Planned(std::string_view wave, std::uint64_t count = 1) { Row(wave).planned += count; }
  void Examined(std::string_view wave) { ++Row(wave).examined; }
  /// Of what was planned: `count` cases taught nothing.
  void LeaveOut(std::string_view wave, std::string_view reason, std::string_view example,
                std::uint64_t count = 1);
  void Tried(std::string_view axis, std::int64_t length, Extent extent, std::int64_t domain);
  /// `run` blocks of `all` of a launch.
  void Ran(std::string_view entry, std::uint64_t run, std::uint64_t all);
  /// Adds what another part of the judgement tried.
  void Add(const Ledger& other);
  void NotReached(std::vector<Unreached> unreached) { unreached_ = std::move(unreached); }

  const std::vector<LedgerRow>& rows() const { return rows_; }  ///< In the order of trying.
  const std::vector<AxisReach>& axes() const { return axes_; }
  const std::vector<LaunchReach>& launches() const { return launches_; }
  const std::vector<Unreached>& unreached() const { return unreached_; }

  std::uint64_t planned() const;
  std::uint64_t examined() const;
  std::uint64_t left_out() const;
  /// Is every planned case accounted for?
  bool Balanced() const { return planned() == examined() + left_out(); }
  /// What an acceptance has to say: "12 of 394 planned cases left out, keys tried to 8192 of 131072,
  /// 2 sides of branches never reached", or nothing.
  std::string Qualification() const;

  bool operator==(const Ledger&) const = default;

 private:
  friend Result<Ledger> LedgerFromJson(const Json& json, std::string place);
  LedgerRow& Row(std::string_view wave);

  std::vector<LedgerRow> rows_;
  std::vector<AxisReach> axes_;
  std::vector<LaunchReach> launches_;
  std::vector<Unreached> unreached_;
};

Json ToJson(const Ledger& ledger);
Result<Ledger> LedgerFromJson(const Json& json, std::string place);

}  // namespace assay::verdict
