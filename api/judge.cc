#include "assay/judge.h"

#include <random>

#include "api/bench.h"
#include "api/outward.h"
#include "ops/names.h"

namespace assay::api {

assay::Result<std::unique_ptr<Bench>> Bench::Make(const Environment& environment,
                                                  const JudgeOptions& options) {
  engine::Toolbox::Options toolbox_options;
  toolbox_options.jail = !options.unsafe_no_jail;
  toolbox_options.pool = sandbox::PoolIn(environment);
  toolbox_options.pool.workers_per_kind = options.workers;
  toolbox_options.compilations = environment.cache;
  ASSAY_TRY(auto toolbox, engine::Toolbox::Create(std::move(toolbox_options)));
  return std::unique_ptr<Bench>(new Bench(std::move(toolbox)));
}

gates::Tools Bench::MakeTools(const std::function<void(const Progress&)>& progress) {
  gates::Tools tools{.compiler = toolbox_->compiler(),
                     .engine = toolbox_->emulator(),
                     .oracle = oracle_,
                     .clock = clock_,
                     .progress = {}};
  if (progress) {
    tools.progress = [progress](const gates::Progress& step) {
      progress({step.gate, step.detail, step.fraction});
    };
  }
  return tools;
}

campaign::Effort EffortOf(Effort effort) {
  switch (effort) {
    case Effort::kQuick:
      return campaign::Effort::kQuick;
    case Effort::kThorough:
      return campaign::Effort::kThorough;
    case Effort::kStandard:
      break;
  }
  return campaign::Effort::kStandard;
}

struct Judge::Impl {
  Environment environment;
  JudgeOptions options;
  std::unique_ptr<Bench> bench;
};

Judge::Judge(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Judge::Judge(Judge&& other) noexcept = default;
Judge& Judge::operator=(Judge&& other) noexcept = default;
Judge::~Judge() = default;

Result<Judge> Judge::Make(const Environment& environment, const JudgeOptions& options) {
  return AtBorder([&]() -> assay::Result<Judge> {
    ASSAY_TRY(auto bench, Bench::Make(environment, options));
    return Judge(std::make_unique<Impl>(Impl{environment, options, std::move(bench)}));
  });
}

Result<Verdict> Judge::Check(const Question& question, const Candidate& candidate,
                             const std::function<void(const Progress&)>& progress) {
  return AtBorder([&]() -> assay::Result<Verdict> {
    ASSAY_TRY(const ops::Instance instance, InstanceOf(impl_->environment, question));
    ASSAY_TRY_VOID(impl_->bench->oracle().Check(instance));
    std::random_device entropy;
    gates::Gatekeeper gatekeeper(
        impl_->bench->MakeTools(progress),
        {.effort = EffortOf(question.effort),
         .seed = question.seed,
         .holdout_seed = [&entropy] { return (std::uint64_t{entropy()} << 32) | entropy(); },
         .unsafe_no_jail = impl_->options.unsafe_no_jail,
         .regressions = {}});
    return Outward(gatekeeper.Judge(instance, {candidate.kernel, candidate.launch}).verdict);
  });
}

Result<Counterexample> Judge::Replay(std::string_view json, const std::string& op) {
  return AtBorder([&]() -> assay::Result<Counterexample> {
    ASSAY_TRY(const Json document, ParseJson(json, "counterexample"));
    ASSAY_TRY(const verdict::Counterexample recorded,
              verdict::CounterexampleFromJson(document, "counterexample"));
    // A document from elsewhere does not bring what it is judged by.
    if (op.empty() && !ops::IsIdentifier(recorded.op)) {
      return Fail(assay::ErrorKind::kUsage,
                  "it names the op '" + recorded.op + "', which is not one of the library's",
                  "counterexample", "name the op's folder beside it");
    }
    ASSAY_TRY(const ops::Instance instance,
              InstanceOf(impl_->environment, {.op = op.empty() ? recorded.op : op,
                                              .binding = recorded.binding,
                                              .arch = recorded.arch}));
    gates::Gatekeeper gatekeeper(impl_->bench->MakeTools({}), {});
    ASSAY_TRY(const verdict::Counterexample replayed, gatekeeper.Replay(instance, recorded));
    return Outward(replayed);
  });
}

}  // namespace assay::api
