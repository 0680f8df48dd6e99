#include "validator/emu/watch/coverage.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/file.h"
#include "validator/emu/program.h"
#include "validator/emu/shadow/plan.h"
#include "validator/ptx/isa_examples.h"

namespace assay::emu {
namespace {

TEST(Coverage, TheDocumentIsWhatTheTablesSay) {
  const auto committed = ReadFile(std::string(ASSAY_SOURCE_DIR) + "/docs/ptx-coverage.md");
  ASSERT_TRUE(committed) << ToString(committed.error());
  EXPECT_TRUE(*committed == PtxCoverage())
      << "regenerate it: build/release/bin/ptx_coverage > docs/ptx-coverage.md";
}

/// What is not executed says so at load, with the line and the instruction.
TEST(Coverage, RefusedSpellingsAreLocated) {
  for (const ptx::Form& form : ptx::Forms().subspan(1)) {
    for (const std::string& refused : RefusedSpellings(form)) {
      EXPECT_NE(refused.find("kernel.ptx:"), std::string::npos) << refused;
    }
  }
}

/// Decoded instructions carry what their row says, and every answer of a row comes to something.
TEST(Coverage, DecodedInstructionsCarryTheirRow) {
  using ptx::Definedness;
  std::set<ptx::Definedness> came_to;
  for (const ptx::Form& form : ptx::Forms().subspan(1)) {
    const auto row = static_cast<std::size_t>(&form - ptx::Forms().data());
    for (const std::string& example : ptx::Examples(form)) {
      SCOPED_TRACE(example);
      const auto program = Program::Load(
          ptx::ExampleModule(form, {example}, form.sm, std::max(90, form.ptx_version)));
      if (!program) continue;
      const Program::Impl& impl = (*program)->impl();
      std::size_t seen = 0;
      for (std::uint32_t pc = 0; pc < impl.code.size(); ++pc) {
        const Decoded& op = impl.code[pc];
        if (op.source->form != row) continue;
        ++seen;
        EXPECT_EQ(op.rules.operation, form.rules.operation);
        EXPECT_EQ(op.rules.effect, form.rules.effect);
        EXPECT_EQ(op.rules.shadow, form.rules.shadow);
        came_to.insert(op.rules.definedness);
        // Only the row's answer, or one that it may come to.
        const bool whole = op.rules.definedness == Definedness::kWhole;
        const bool kept = op.rules.definedness == form.rules.definedness;
        const bool halves = op.rules.definedness == Definedness::kByHalves &&
                            form.rules.definedness == Definedness::kUpward;
        const bool refined = form.rules.definedness == Definedness::kConverted ||
                             form.rules.definedness == Definedness::kCompared;
        EXPECT_TRUE(whole || kept || halves || refined);
        EXPECT_NE(op.rules.definedness, Definedness::kConverted);
        const Plan plan = PlanFor(impl, pc, FloatRegisters(*impl.functions.back().function));
        EXPECT_NE(plan.act, Act::kUnknown);
        EXPECT_TRUE(plan.act != Act::kFormula || plan.formula != nullptr);
      }
      EXPECT_GE(seen, 1u);
    }
  }
  for (const Definedness answer :
       {Definedness::kMoved, Definedness::kMovedOne, Definedness::kMovedTwo, Definedness::kBitwise,
        Definedness::kUpward, Definedness::kByHalves, Definedness::kCompared, Definedness::kMatrix,
        Definedness::kPaired, Definedness::kDecided})
    EXPECT_TRUE(came_to.contains(answer)) << static_cast<int>(answer);
}

}  // namespace
}  // namespace assay::emu
