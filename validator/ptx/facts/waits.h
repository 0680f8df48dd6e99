// Which of the loops that end when memory has changed wait for other blocks.
//
// Not every such loop does (flow.h). A block that draws the number of its next tile from a counter changes what it reads
// itself, each time by as much; what nobody writes does not change; and shared memory holds what the block's own threads put
// there, which is followed to where they had it from. What is left may be a wait.
//
// Addresses are told apart by what they are of (origins.h), buffer by buffer: a counter in the midst of other data of its
// buffer is taken for part of it.
#pragma once

#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "validator/ptx/facts/flow.h"
#include "validator/ptx/facts/origins.h"
#include "validator/ptx/module.h"

namespace assay::facts {

/// Of a verified module, which must outlive it. Cost: linear in the text for each read that is asked about. Not thread-safe.
class Waits {
 public:
  Waits(const ptx::Module& module, const Origins& origins);

  /// May what this instruction reads be something that it takes another block to change?
  bool MayBeOn(std::uint32_t function, ptx::InstructionIndex read);

  /// The loops of a function that may wait for others: what they read for that.
  Polling Of(std::uint32_t function);

 private:
  using Place = std::pair<std::uint32_t, ptx::InstructionIndex>;
  struct Write {
    Place place;
    ptx::Space space;
    OriginSet objects;
    bool unknown;  ///< It may go anywhere.
    bool counts;   ///< It adds a positive constant to an integer.
  };
  enum class Where : std::uint8_t { kUnknown, kShared, kGlobal };

  bool Decide(const Place& read);
  bool Reaches(const Place& read);
  /// May what an instruction stores be such, by its registers and what it reads?
  bool StoresSuch(const Place& store);
  Where WhereIs(const OriginSet& objects) const;
  bool Meets(const Write& write, const OriginSet& objects, Where where) const;
  bool Counts(const ptx::Function& function, const ptx::Instruction& in) const;

  const ptx::Module& module_;
  const Origins& origins_;
  std::vector<Write> writes_;
  std::set<Place> seen_;  ///< By the question that is asked.
};

}  // namespace assay::facts
