// A judge over fakes (validator/campaign/testing/fakes.h), for tests of whole judgements.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "validator/campaign/testing/fakes.h"
#include "validator/gates/gatekeeper.h"

namespace assay::gates {

struct FakeBench : campaign::FakeParts {
  explicit FakeBench(campaign::FakeEngine::Kernel kernel = campaign::FakeEngine::Good())
      : FakeParts(std::move(kernel)) {
    options.effort = campaign::Effort::kQuick;
    options.jobs = 2;
  }
  FakeClock clock;
  Options options;

  /// The fake engine knows one kernel, not PTX.
  Tools tools() {
    return {compiler, engine, oracle,
            clock,    {},     [](engine::Engine&, std::uint64_t) -> Status { return {}; }};
  }
  Judgement Judge() { return Gatekeeper(tools(), options).Judge(instance, candidate); }
};

inline const verdict::GateResult& GateOf(const verdict::Verdict& verdict, std::string_view name) {
  const auto found = std::ranges::find(verdict.gates, name, &verdict::GateResult::gate);
  if (found != verdict.gates.end()) return *found;
  static const verdict::GateResult kNone;
  ADD_FAILURE() << "no gate " << name;
  return kNone;
}

}  // namespace assay::gates
