// Skeletons: that what is left of a program writes where the program does, that right kernels show nothing wrong by theirs,
// and that wrong ones do at shapes at which nobody can afford what they write.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <iterator>

#include "base/file.h"
#include "base/rng.h"
#include "validator/campaign/alone.h"
#include "validator/campaign/blocks.h"
#include "validator/campaign/campaign.h"
#include "validator/campaign/parts.h"
#include "validator/cases/recipes.h"
#include "validator/cases/shapes.h"
#include "validator/engine/bind.h"
#include "validator/gates/gate.h"
#include "validator/gates/testing/real_bench.h"
#include "validator/gates/testing/share.h"

namespace assay::gates {
namespace {

const Path kCorpus = Path(ASSAY_SOURCE_DIR) / "corpus";

struct Kernel {
  std::string name;
  ops::Instance instance;
  verdict::Candidate candidate;
};

class PlacesTest : public RealBenchTest<> {
 protected:
  static ops::Library All() {
    return ops::Library{{Path(ASSAY_SOURCE_DIR) / "ops", kCorpus / "large" / "ops"}};
  }
  static Kernel KernelIn(const Path& folder) {
    const Json about = ReadJsonFile((folder / "expect.json").string()).value();
    return {folder.filename(),
            ops::MakeInstance(All().Find(about.at("op").get<std::string>()).value(),
                              about.at("dtypes").get<std::map<std::string, std::string>>(), "sm_90")
                .value(),
            CandidateIn(folder)};
  }
  /// Those that are accepted.
  static std::vector<Kernel> RightOnes() {
    std::vector<Kernel> kernels;
    for (const Path& root :
         {kCorpus / "right", kCorpus / "large" / "kernels", kCorpus / "adversarial" / "memory"}) {
      for (const std::string& name : FoldersBelow(root)) {
        const Json about = ReadJsonFile((root / name / "expect.json").string()).value();
        const bool right = about.contains("expect")
                               ? about.at("expect") == "accepted"
                               : !about.contains("gates") && !about.contains("outcome");
        if (right) kernels.push_back(KernelIn(root / name));
      }
    }
    return kernels;
  }
  /// Calls `use` with the trial of a candidate that compiles.
  template <class Use>
  void With(const Kernel& kernel, Use use) {
    Tools tools = bench_->tools();
    const Options options;
    GateContext context(kernel.instance, kernel.candidate, tools, options);
    for (const Gate& gate : AllGates()) {
      if (gate.stage >= Stage::kCases) break;
      verdict::GateResult result;
      gate.run(context, result);
      ASSERT_NE(result.status, verdict::GateStatus::kRefuted) << kernel.name << result.reason;
    }
    use(context.Trial());
  }
  /// A few shapes, the smallest where none is small.
  static std::vector<ops::AxisValues> ShapesOf(const ops::Instance& instance) {
    std::vector<ops::AxisValues> shapes;
    const auto some =
        cases::GenerateShapes(instance, {.max_elements = 1 << 15, .count = 20, .seed = 3});
    for (std::size_t i = 0; some && i < some->size(); i += 5) shapes.push_back((*some)[i].axes);
    if (!shapes.empty()) return shapes;
    ops::AxisValues few;
    for (const ops::Axis& axis : instance.op.axes)
      few[axis.name] = std::max<std::int64_t>(axis.min, 67);
    if (const auto solved = cases::SolveAxes(instance.op, {}, few)) shapes.push_back(*solved);
    return shapes;
  }
  static campaign::CaseRun PlacesOf(const campaign::Trial& trial, ops::AxisValues axes) {
    cases::Probe probe{.case_ = cases::MakeCase(trial.instance, *cases::FindRecipe("plain"),
                                                std::move(axes), 1, "places")};
    probe.ends_only = probe.places_only = true;
    return trial.runner.Run(probe, {});
  }
};

// Of so few no part of them says much: a share of the corpora (share.h).
constexpr std::size_t kEnough = 20;

using Written = std::vector<std::vector<std::int64_t>>;  ///< By buffer.

/// What block `number` of a launch writes, by the program or its skeleton, over that garbage; nothing where that is not
/// known.
std::optional<Written> WrittenOver(const campaign::Trial& trial, engine::Engine& engine,
                                   const engine::Call& call, std::size_t launch,
                                   std::uint64_t number, bool skeleton, std::uint8_t poison) {
  auto bound = engine::Bind(trial.instance, trial.compiled, std::array{call}, {.poison = poison});
  if (!bound) return std::nullopt;
  Execution& execution = bound->execution;
  execution.launches = {execution.launches[launch]};
  execution.launches.front().only = {{number, 1}};
  execution.checks.race = false;
  execution.note_disguised = true;
  execution.limits.max_steps = 150'000'000;
  if (skeleton) campaign::UseSkeleton(trial.compiled.skeleton, execution);
  const auto report = engine.Run(execution, bound->buffers, engine::Trust::kCandidate);
  if (!report || report->stop != Stop::kCompleted || (skeleton && !report->findings.empty()))
    return std::nullopt;
  Written written;
  for (std::uint32_t i = 0; i < bound->buffers.size(); ++i) {
    const BufferSpec& spec = execution.buffers[i];
    if (spec.role != BufferRole::kInput && spec.fill == BufferFill::kUninitialised)
      written.push_back(
          campaign::WrittenElements(*bound->buffers[i], SizeOf(spec.dtype), poison, *report, i));
  }
  return written;
}

/// Over two kinds: what a launch takes from others is garbage too, and may be handed on as it is.
std::optional<Written> WrittenBy(const campaign::Trial& trial, engine::Engine& engine,
                                 const engine::Call& call, std::size_t launch, std::uint64_t number,
                                 bool skeleton) {
  auto one = WrittenOver(trial, engine, call, launch, number, skeleton, 0x3c);
  const auto other = one ? WrittenOver(trial, engine, call, launch, number, skeleton, 0xa5) : one;
  if (!other) return std::nullopt;
  for (std::size_t i = 0; i < one->size(); ++i) {
    std::vector<std::int64_t> both;
    std::ranges::set_union((*one)[i], (*other)[i], std::back_inserter(both));
    (*one)[i] = std::move(both);
  }
  return one;
}

TEST_F(PlacesTest, SkeletonsWriteWhereProgramsDo) {
  std::size_t kernels = 0, with_one = 0, blocks = 0;
  for (const Kernel& kernel : Share(RightOnes())) {
    With(kernel, [&](const campaign::Trial& trial) {
      ++kernels;
      std::size_t compared = 0;
      for (const ops::AxisValues& axes : ShapesOf(trial.instance)) {
        const cases::Case value =
            cases::MakeCase(trial.instance, *cases::FindRecipe("plain"), axes, 1, "places");
        const auto filled = bench_->oracle->Materialise(trial.instance, value);
        if (!filled || trial.compiled.skeleton.ptx.empty()) continue;
        const auto plan = ops::Resolve(trial.plan, trial.instance, filled->axes);
        ASSERT_TRUE(plan) << ToString(plan.error());
        const engine::Call call{.plan = &*plan, .axes = &filled->axes, .inputs = &filled->inputs};
        for (std::size_t launch = 0; launch < plan->kernels.size(); ++launch) {
          const ops::ResolvedKernel& one = plan->kernels[launch];
          const std::uint64_t all = std::uint64_t{one.grid[0]} * one.grid[1] * one.grid[2];
          for (const std::uint64_t number : {std::uint64_t{0}, all - 1, all / 2}) {
            engine::Engine& engine = bench_->toolbox->emulator();
            const auto cut = WrittenBy(trial, engine, call, launch, number, true);
            const auto whole = cut ? WrittenBy(trial, engine, call, launch, number, false) : cut;
            if (!cut || !whole) continue;
            ++compared;
            EXPECT_EQ(*cut, *whole) << kernel.name << " " << cases::Describe(value, trial.instance)
                                    << " launch " << launch << " block " << number;
          }
        }
      }
      blocks += compared;
      with_one += compared > 0 ? 1 : 0;
    });
  }
  std::printf("skeletons: of %zu of %zu kernels, %zu blocks\n", with_one, kernels, blocks);
  if (kernels >= kEnough) {
    EXPECT_GE(with_one * 10, kernels * 9);
  }
}

TEST_F(PlacesTest, OfRightKernelsNothingIsFound) {
  std::size_t kernels = 0, examined = 0;
  for (const Kernel& kernel : Share(RightOnes())) {
    With(kernel, [&](const campaign::Trial& trial) {
      ++kernels;
      bool any = false;
      for (const ops::AxisValues& axes : ShapesOf(trial.instance)) {
        const campaign::CaseRun run = PlacesOf(trial, axes);
        EXPECT_FALSE(run.error) << kernel.name << ToString(*run.error);
        EXPECT_TRUE(run.report.findings.empty())
            << kernel.name << ": " << run.report.findings.front().message;
        for (const campaign::OutputState& output : run.outputs)
          EXPECT_EQ(output.unwritten_bytes, 0u) << kernel.name << " " << output.name;
        any = any || run.left_out.empty();
      }
      examined += any ? 1 : 0;
    });
  }
  std::printf("places: of %zu of %zu kernels\n", examined, kernels);
  if (kernels >= kEnough) {
    EXPECT_GE(examined * 10, kernels * 7);
  }
}

TEST_F(PlacesTest, ASmallGridThatLeavesRowsIsFound) {
  With(KernelIn(kCorpus / "large" / "kernels" / "gemm_4096_rows_past_1024"),
       [&](const campaign::Trial& trial) {
         const auto at = [&](std::int64_t m) {
           ops::AxisValues rows;
           for (const ops::Axis& axis : trial.instance.op.axes) rows[axis.name] = m;
           return PlacesOf(trial, cases::SolveAxes(trial.instance.op, {}, rows).value());
         };
         const campaign::CaseRun right = at(1024), wrong = at(1025);
         ASSERT_EQ(right.left_out, "");
         ASSERT_EQ(wrong.left_out, "");
         EXPECT_EQ(right.outputs.front().unwritten_bytes, 0u);
         EXPECT_EQ(wrong.outputs.front().unwritten_bytes, 8192u);
         EXPECT_EQ(wrong.outputs.front().first_unwritten, 1024 * 4096);
       });
}

// Of 264 blocks number 168 does, as a table says; where an entry of the table is wrong, nobody.
TEST_F(PlacesTest, EndsOfWhatIsTooMuchToWriteAreAskedInPieces) {
  constexpr std::int64_t kRows = 262'144;
  for (const bool right : {true, false}) {
    const auto name = right ? "rms_norm_4096_runs_that_double" : "rms_norm_4096_runs_table_entry";
    With(KernelIn(kCorpus / "large" / "kernels" / name), [&](const campaign::Trial& trial) {
      cases::Probe probe{.case_ = cases::MakeCase(trial.instance, *cases::FindRecipe("plain"),
                                                  {{"tokens", kRows}}, 1, "places")};
      probe.ends_only = probe.places_only = true;
      EXPECT_NE(trial.runner.Run(probe, {}).left_out, "") << "it takes more than others may";
      const campaign::CaseRun run = trial.runner.Run(probe, {.part_steps = 800'000'000});
      EXPECT_EQ(run.left_out, "");
      ASSERT_EQ(run.outputs.empty(), right);
      if (!right) {
        EXPECT_EQ(run.outputs.front().first_unwritten, kRows * 4096 - 1);
      }
    });
  }
}

}  // namespace
}  // namespace assay::gates
