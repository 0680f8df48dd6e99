#include "validator/emu/watch/selections.h"

#include "validator/emu/core.h"
#include "validator/execution/coverage.h"

namespace assay::emu {

void NoteSelection(Warp& base, const Decoded& op) {
  CoreWarp& warp = Core(base);
  const DecodedOperand& by = op.operands[op.operand_count - 1];
  if (!warp.device->branch_sides.empty() && by.kind == DecodedOperand::Kind::kPredicate) {
    const LaneMask holds = by.negated ? ~warp.predicates[by.slot] : warp.predicates[by.slot];
    std::uint8_t sides = kOfSelection;
    if ((warp.exec & holds) != 0) sides |= kWentFirst;
    if ((warp.exec & ~holds) != 0) sides |= kWentSecond;
    warp.device->branch_sides[warp.PcOf(op)] |= sides;
  }
  op.run(warp, op);
}

}  // namespace assay::emu
