// Runs an op's reference in a number type of the prelude (ops/prelude): compile, bind wide outputs,
// run on an engine, collect the cells. The source of truth of kind "cuda" (truth_source.h).
//
// Thread-safe; compiled references are kept.
#pragma once

#include <cstdint>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/tensor.h"
#include "ops/launch_plan.h"
#include "ops/op.h"
#include "validator/engine/bind.h"
#include "validator/engine/compiler.h"
#include "validator/engine/engine.h"
#include "validator/oracle/reference_part.h"
#include "validator/oracle/truth_source.h"

namespace assay::oracle {

/// May products be added by tensor cores, which truncate? Not those of f32 inputs: TF32 drops bits.
bool TensorCoresApply(const ops::Instance& instance);

class ReferenceRunner final : public TruthSource {
 public:
  ReferenceRunner(engine::Compiler& compiler, engine::Engine& engine)
      : compiler_(compiler), engine_(engine) {}

  std::string_view kind() const override { return "cuda"; }
  Standing standing() const override { return Standing::kDerived; }

  /// Does the reference compile?
  Status Check(const ops::Instance& instance) override;
  Status Prepare(const ops::Instance& instance) override;

  Result<Cells> Run(const ops::Instance& instance, const NumberType& type,
                    const ops::AxisValues& axes, const TensorMap& inputs) override;

  Result<Cells> RunOfChoices(const ops::Instance& instance, const NumberType& type,
                             const ops::AxisValues& axes, const TensorMap& inputs,
                             KeptRun& kept) override;

  /// The same, but only those warps run, in blocks as small as the grid has room for, which, by the
  /// reference's convention (one thread an output element, or one a row), write the `wanted` elements
  /// of each output; as many as there is time for. Cells of other elements are zero. kUnsupported where
  /// the plan cannot be cut so.
  Result<Cells> RunAt(const ops::Instance& instance, const NumberType& type,
                      const ops::AxisValues& axes, const TensorMap& inputs,
                      const Wanted& wanted) override;

  /// The same with whole warps, which take hardly longer than single threads: of those that write
  /// what is `wanted`, as many as `effort` allows, in an order that `seed` says. Launches that
  /// hand on what they wrote run whole. Takes out of `wanted` what was not computed. kLimit where
  /// even one warp takes too long.
  Result<Cells> RunSlice(const ops::Instance& instance, const NumberType& type,
                         const ops::AxisValues& axes, const TensorMap& inputs, std::uint64_t seed,
                         const PartEffort& effort, Wanted& wanted) override;

 private:
  /// Of a case, what is computed: that decides by which plan.
  /// Part: what is not computed reads as 0. A small one takes the plan of the whole.
  enum class Extent : std::uint8_t { kWhole, kSmallPart, kPart };
  struct Bound;
  struct Program;
  using CompiledOrNot = Result<std::shared_ptr<const engine::CompiledKernel>>;
  Result<std::unique_ptr<Bound>> Bind(const ops::Instance& instance, const NumberType& type,
                                      const ops::AxisValues& axes, const TensorMap& inputs,
                                      Extent extent);
  /// Read once for each op, for each case asks.
  Result<std::shared_ptr<const Program>> ProgramOf(const ops::OpSpec& op, Extent extent);
  static Result<Program> ReadProgram(const ops::OpSpec& op, bool part);
  /// All of what is bound. Returns what it took, in instructions of whole warps.
  Result<double> RunWhole(const ops::Instance& instance, const ops::AxisValues& axes, Bound& bound);
  /// RunSlice by the plan for that extent. `all_or_nothing`: kLimit where not all that is wanted, or as much as ever is
  /// computed, can be had for little.
  Result<Cells> RunWarps(const ops::Instance& instance, const NumberType& type,
                         const ops::AxisValues& axes, const TensorMap& inputs, std::uint64_t seed,
                         const PartEffort& effort, Extent extent, bool all_or_nothing,
                         Wanted& wanted);
  Result<Report> RunPart(const ops::Instance& instance, engine::Binding& binding,
                         std::uint64_t max_steps);
  /// Once for each; hundreds of kilobytes, which every run borrows.
  CompiledOrNot Compile(const ops::Instance& instance, const NumberType& type,
                        const Program& program);
  CompiledOrNot CompileAnew(const ops::Instance& instance, const NumberType& type,
                            const Program& program, std::vector<std::string> defines);
  std::future<Status> CompileBeside(const ops::Instance& instance, Extent extent);

  engine::Compiler& compiler_;
  engine::Engine& engine_;
  std::mutex mutex_;  ///< Guards what follows.
  std::map<std::string, std::shared_future<CompiledOrNot>> compiled_;
  std::map<std::pair<std::string, bool>, std::shared_ptr<const Program>> programs_;
  std::vector<std::future<Status>>
      behind_;  ///< What nobody has waited for. Ends before what it uses.
};

}  // namespace assay::oracle
