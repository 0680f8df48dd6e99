// Litmus tests: a few threads, a few instructions each, one outcome, and whether the PTX memory model
// allows it.
//
// A test is text:
//
//   test MP.relaxed
//   about two blocks, relaxed accesses, no fence
//   thread 0.0                      block.thread
//     st.relaxed.gpu x 1
//     st.relaxed.gpu y 1
//   thread 1.0
//     ld.relaxed.gpu r0 y
//     ld.relaxed.gpu r1 x
//   outcome 1:r0=1 1:r1=0           threads by their place in the test; x=1: memory in the end
//   expect allowed shown
//
// All locations start at 0; `space shared` puts them into shared memory. Instructions:
//   st.{weak,volatile,relaxed.S,release.S} LOCATION VALUE      a number, or a register
//   ld.{weak,volatile,relaxed.S,acquire.S} REGISTER LOCATION
//   atom.{relaxed,acquire,release,acq_rel}.S.{add,exch} REGISTER LOCATION VALUE
//   red.{relaxed,release}.S.add LOCATION VALUE
//   fence.{acq_rel,sc}.S
//   bar                                                        of the whole block
// with S one of cta, gpu, sys. Expectations:
//   forbidden            no execution of the model ends so
//   allowed shown        and the emulator shows it
//   allowed never        and the emulator never does: it says so in its documentation
//   allowed race         the accesses race; the emulator reports that instead
//
// Values; no behaviour beyond parsing. What the model says is in model.h, the kernel in kernel.h.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace assay::litmus {

enum class Order : std::uint8_t { kWeak, kVolatile, kRelaxed, kAcquire, kRelease, kAcqRel, kSc };
enum class Scope : std::uint8_t { kCta, kGpu, kSys };

struct Instruction {
  enum class Kind : std::uint8_t { kStore, kLoad, kAdd, kExchange, kReduce, kFence, kBarrier };
  Kind kind = Kind::kStore;
  Order order = Order::kWeak;
  Scope scope = Scope::kSys;
  int location = -1;
  int result = -1;   ///< Register that is written.
  int operand = -1;  ///< Register that is stored or added; -1: `value`.
  std::uint32_t value = 0;
  std::string text;  ///< As written.

  bool Reads() const {
    return kind == Kind::kLoad || kind == Kind::kAdd || kind == Kind::kExchange ||
           kind == Kind::kReduce;
  }
  bool Writes() const {
    return kind == Kind::kStore || kind == Kind::kAdd || kind == Kind::kExchange ||
           kind == Kind::kReduce;
  }
  bool Atomic() const { return Reads() && Writes(); }
  bool Strong() const { return Atomic() || order != Order::kWeak; }
  bool Acquires() const { return order == Order::kAcquire || order == Order::kAcqRel; }
  bool Releases() const { return order == Order::kRelease || order == Order::kAcqRel; }
};

struct Thread {
  std::uint32_t block = 0;
  std::uint32_t thread = 0;  ///< In the block.
  std::vector<Instruction> code;
  int registers = 0;
};

/// Registers of the threads, then memory in the end: "0:r0=1 x=2".
using Outcome = std::map<std::string, std::uint32_t>;
std::string ToString(const Outcome& outcome);
/// Does `whole` have all that `part` says?
bool Matches(const Outcome& whole, const Outcome& part);

struct Test {
  enum class Expectation : std::uint8_t { kForbidden, kShown, kNever, kRace };
  std::string name;
  std::string about;
  bool shared = false;
  std::vector<std::string> locations;
  std::vector<Thread> threads;
  Outcome outcome;
  Expectation expectation = Expectation::kForbidden;

  bool allowed() const { return expectation != Expectation::kForbidden; }
  std::uint32_t blocks() const;
  /// Threads of a block: whole warps.
  std::uint32_t block_threads() const;
};

/// All tests of one text. Errors name the line.
Result<std::vector<Test>> Parse(std::string_view text, const std::string& file);
/// All tests of a folder, by file and in the order in which they stand; empty: tests/litmus/tests.
Result<std::vector<Test>> LoadAll(std::string folder = {});

}  // namespace assay::litmus
