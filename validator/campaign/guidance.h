// Guidance: what no case has reached yet, and which constants of the program may be the key to it.
//
// Coverage adds up, over all runs, which sides of which branches and selections ran. Constants are the immediates
// that the PTX compares with, divides by or masks with: a kernel that treats `n == 4096`, `n % 64`
// or `ids[i] == 77` in its own way carries the number in a setp, an and or a rem. Cases are aimed
// at such numbers: axes set to them, next to them and past them, inputs holding them.
//
// Deterministic; linear in what is known of the program.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "validator/cases/case.h"
#include "validator/execution/execution.h"
#include "validator/ptx/facts/facts.h"
#include "validator/verdict/ledger.h"

namespace assay::campaign {

class Coverage {
 public:
  /// Adds a run's branches; true when one of its sides is new.
  bool Add(const std::vector<BranchCoverage>& branches);
  /// Sides of branches that never ran, in the order of lines. Copies of one source line that the
  /// compiler made are told once, with their number. Of selections, those of which all copies of one
  /// place in the source went the same way, once a line.
  std::vector<verdict::Unreached> Unreached() const;
  /// Lines in the PTX of branches and selections of which one side ran.
  std::set<std::uint32_t> HalfReached() const;
  std::size_t branches() const { return branches_.size(); }
  /// Sides that ran, of 2 * branches().
  std::size_t sides() const;

 private:
  std::map<std::uint32_t, BranchCoverage> branches_;  ///< By PTX line.
};

/// What no case reached: "kernel.cu:14: the branch, taken". Of the PTX: an `if` that is compiled to
/// a jump around its body is taken where the condition fails. Of a selection, which way its operands
/// stand says nothing to people: "the selection's other side".
std::string Describe(const BranchCoverage& partial);

struct ProgramConstants {
  /// Distinct, at least 2; first those compared with, then divisors, masks + 1 and powers of two
  /// shifted by, each ascending.
  std::vector<std::int64_t> integers;
  /// Distinct, without 0 and 1; behind the ascending ones, integers compared with that read as
  /// ordinary numbers when they are taken for a float's bits.
  std::vector<double> floats;
  /// Of those, what numbers are divided by or masked with, from 8 to 256, ascending: a kernel that goes its own way
  /// for whole vectors, tiles or steps tells them so.
  std::vector<std::int64_t> units = {};
  /// Entries of short tables, in their order: lengths, perhaps, at which something begins. Behind all others in `integers`
  /// as well.
  std::vector<std::int64_t> tables = {};
};
/// None of a program that is not known (null).
ProgramConstants ConstantsOfProgram(const facts::Facts* program);

/// Cases aimed at the constants: each axis at a constant, its neighbours and multiples past it,
/// others small or 1, within `max_elements`; inputs that hold a constant, its half and its double, in
/// ordinary rows and in rows and columns of one element. The first `count` of them.
std::vector<cases::Case> AimedCases(const ops::Instance& instance,
                                    const ProgramConstants& constants, std::int64_t max_elements,
                                    std::size_t count, std::uint64_t seed);

/// A number of which all these units are divisors, as far as that stays below `most`: the largest ones first. 1 where
/// there is none.
std::int64_t CommonMultiple(std::span<const std::int64_t> units, std::int64_t most);

/// The next number past `constant` that is an odd multiple of the unit: whole vectors, tiles or steps, which no even
/// number of threads, warps or stages shares evenly.
std::int64_t OddMultiplePast(std::int64_t constant, std::int64_t unit);

/// Cases with two axes past constants at once, others small, of those that `fits` admits: of each
/// pair of axes those that no other one is past in both, the smaller first; odd extents and
/// multiples of eight.
std::vector<cases::Case> PairedCases(const ops::Instance& instance,
                                     const ProgramConstants& constants,
                                     const std::function<bool(const ops::AxisValues&)>& fits,
                                     std::uint64_t seed);

}  // namespace assay::campaign
