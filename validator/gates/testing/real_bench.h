// Everything that judges, for tests of real candidates: jailed compiler, emulator, oracle and the
// shipped ops. One for a test program, so that workers stay warm and truths are shared.
//
//   static void SetUpTestSuite() { bench_ = RealBench::Make().release(); }
//   void SetUp() override { ASSERT_EQ(bench_->fault, ""); }
//
// A machine that cannot judge (no jail, no assay-worker) fails the tests: skipped, they would read
// as passed.
#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "base/file.h"
#include "ops/op.h"
#include "validator/engine/toolbox.h"
#include "validator/gates/gatekeeper.h"
#include "validator/oracle/oracle.h"

namespace assay::gates {

struct RealBench {
  std::string fault;  ///< Why nothing can be judged here; empty: everything is set.
  std::unique_ptr<engine::Toolbox> toolbox;
  std::unique_ptr<oracle::Oracle> oracle;
  SystemClock clock;
  ops::Library library{{Path(ASSAY_SOURCE_DIR) / "ops"}};

  static std::unique_ptr<RealBench> Make() {
    auto bench = std::make_unique<RealBench>();
    auto toolbox = engine::Toolbox::Create({});
    if (!toolbox) {
      bench->fault = ToString(toolbox.error());
      return bench;
    }
    bench->toolbox = *std::move(toolbox);
    bench->oracle =
        std::make_unique<oracle::Oracle>(bench->toolbox->compiler(), bench->toolbox->emulator());
    return bench;
  }
  Tools tools() { return {toolbox->compiler(), toolbox->emulator(), *oracle, clock, {}}; }
};

}  // namespace assay::gates
