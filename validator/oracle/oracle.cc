#include "validator/oracle/oracle.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <mutex>

#include "base/digest.h"
#include "base/json.h"
#include "base/lru.h"
#include "ops/prelude.h"
#include "validator/cases/input_store.h"
#include "validator/oracle/cells.h"
#include "validator/oracle/choices.h"
#include "validator/oracle/generator.h"
#include "validator/oracle/randomness.h"
#include "validator/oracle/reference_run.h"

namespace assay::oracle {
namespace {

// Truths are kept while they fit; the one used longest ago goes first. A campaign goes through more
// than six hundred cases and returns to most of them, so that a number of entries would be a poor limit.
constexpr std::size_t kKeptBytes = std::size_t{512} << 20;
// Of parts: a few rows of a vocabulary are ten megabytes, and an op has a dozen of such cases.
constexpr std::size_t kKeptPartBytes = std::size_t{256} << 20;
constexpr std::size_t kMostKept = 1 << 16;

std::size_t BytesOf(const Truth& truth) {
  std::size_t numbers = 0;
  for (const auto& [name, output] : truth.outputs) {
    for (const auto* const each :
         {&output.value, &output.allowance, &output.typical, &output.independent, &output.in_order,
          &output.in_order_fused, &output.in_order_slack, &output.contributions})
      numbers += each->capacity();
  }
  return numbers * sizeof(double);
}

std::size_t BytesOf(const SparseTruth& truth) {
  std::size_t points = 0;
  for (const auto& [name, output] : truth) points += output.capacity();
  return points * sizeof(TruthPoint);
}

/// What the reference's own order gives.
Result<void> AddInOrder(TruthSource& source, const ops::Instance& instance,
                        const ops::AxisValues& axes, const TensorMap& inputs, Truth& truth) {
  NumberType separate{.kind = NumberType::Kind::kRounded,
                      .format = instance.op.contract.accumulate};
  NumberType fused = separate, bounded;
  fused.fused = true;
  bounded.in_order = true;
  ASSAY_TRY(const Cells first, source.Run(instance, separate, axes, inputs));
  ASSAY_TRY(const Cells second, source.Run(instance, fused, axes, inputs));
  ASSAY_TRY(const Cells slack, source.Run(instance, bounded, axes, inputs));
  for (auto& [name, output] : truth.outputs)
    ReadInOrder(first.find(name)->second, second.find(name)->second, slack.find(name)->second,
                output);
  return {};
}

/// Elements that the op leaves open are open.
void OpenWhereUndefined(const ops::OpSpec& op, Truth& truth) {
  for (const ops::TensorSpec& spec : op.outputs) {
    if (spec.relation.where.empty()) continue;
    OutputTruth& output = truth.outputs.find(spec.name)->second;
    const std::vector<double>& mask = truth.outputs.find(spec.relation.where)->second.value;
    for (std::size_t i = 0; i < output.value.size(); ++i) {
      if (mask[i * mask.size() / output.value.size()] != 0) continue;
      output.value[i] = 0;
      output.allowance[i] = std::numeric_limits<double>::infinity();
      if (!output.in_order.empty()) output.in_order[i] = output.allowance[i];
    }
  }
}

std::string KeyOf(const ops::Instance& instance, const cases::Case& value) {
  return instance.Id() + " " + instance.op.digest + " " +
         Sha256Hex(CompactJson(cases::ToJson(value)));
}

/// Of a part: what was asked for decides which elements there are truths for.
std::string KeyOfPart(const ops::Instance& instance, const cases::Case& value,
                      const SparseElements& wanted, std::uint64_t seed) {
  std::string key = fmt::format("{} part {}", KeyOf(instance, value), seed);
  for (const auto& [name, elements] : wanted) {
    // Millions of elements, in a few runs of neighbours.
    std::string runs;
    for (std::size_t i = 0, first = 0; i < elements.size(); ++i) {
      if (i + 1 < elements.size() && elements[i + 1] == elements[i] + 1) continue;
      fmt::format_to(std::back_inserter(runs), "{}-{} ", elements[first], elements[i]);
      first = i + 1;
    }
    key += " " + name + " " + Sha256Hex(runs);
  }
  return key;
}

std::unexpected<Error> Chosen(const ops::Instance& instance) {
  return Fail(ErrorKind::kUnsupported, "what follows from a choice hangs on all of its scores",
              instance.op.name);
}

SparseTruth ReadPoints(const ops::Instance& instance, const Cells& cells,
                       const SparseElements& wanted) {
  SparseTruth truth;
  for (const auto& [name, elements] : wanted) {
    const ops::TensorSpec* spec = instance.op.FindOutput(name);
    const auto found = cells.find(name);
    if (spec == nullptr || found == cells.end() || !spec->relation.HoldsElements()) continue;
    for (const std::int64_t index : elements) {
      if (const auto point = ReadCell(instance, *spec, found->second, index))
        truth[name].push_back(*point);
    }
  }
  return truth;
}

}  // namespace

struct Oracle::Impl {
  Impl(engine::Compiler& compiler, engine::Engine& engine)
      : runner(compiler, engine), generator(runner, engine.devices() > 0) {}

  ReferenceRunner runner;
  std::vector<std::unique_ptr<TruthSource>> sources;  ///< Of other kinds.
  Generator generator;
  cases::InputStore input_store;
  mutable std::mutex mutex;
  Lru<std::shared_ptr<const Truth>> whole{kMostKept, kKeptBytes};
  Lru<std::shared_ptr<const SparseTruth>> parts{kMostKept, kKeptPartBytes};
  Counts counts;

  Result<TruthSource*> SourceOf(const ops::Instance& instance) {
    if (instance.op.truth == runner.kind()) return &runner;
    for (const auto& source : sources) {
      if (source->kind() == instance.op.truth) return source.get();
    }
    return Fail(ErrorKind::kUnsupported,
                "nothing here runs references of the kind '" + instance.op.truth + "'",
                instance.op.name + ": /reference/kind");
  }

  /// Where sums have many times more terms than any input has values, indices bring the same ones
  /// again and again, and their roundings with them.
  static bool RepeatsItsTerms(const TensorMap& inputs, const Truth& truth) {
    constexpr double kTimes = 4;
    std::int64_t most = 0;
    for (const auto& [name, tensor] : inputs) {
      if (IsFloat(tensor.dtype)) most = std::max(most, tensor.elements);
    }
    return most > 0 && std::ranges::any_of(truth.outputs, [&](const auto& output) {
             return std::ranges::any_of(output.second.contributions, [&](double terms) {
               return terms > kTimes * static_cast<double>(most);
             });
           });
  }

  /// What the reference writes, for inputs with choices among them; `kept`: of an op that chooses.
  Result<Truth> Run(const ops::Instance& instance, const ops::AxisValues& axes,
                    const Randomness& randomness, const TensorMap& inputs, KeptRun& kept) {
    NumberType type;
    type.independent = randomness.independent;
    ASSAY_TRY(TruthSource* const source, SourceOf(instance));
    ASSAY_TRY(const Cells cells, instance.op.Chooses()
                                     ? source->RunOfChoices(instance, type, axes, inputs, kept)
                                     : source->Run(instance, type, axes, inputs));
    Truth truth;
    truth.warp_steps = cells.warp_steps;
    for (const auto* specs : {&instance.op.outputs, &instance.op.hidden}) {
      for (const ops::TensorSpec& spec : *specs) {
        const auto written = cells.find(spec.name);
        if (written == cells.end()) continue;  // a choice, which the reference reads
        OutputTruth output = ReadCells(instance, spec, written->second, randomness.exchangeable);
        output.ordinary = output.ordinary && !TensorCoresApply(instance);
        truth.outputs[spec.name] = std::move(output);
      }
    }
    if (!instance.op.contract.reassociation)
      ASSAY_TRY_VOID(AddInOrder(*source, instance, axes, inputs, truth));
    OpenWhereUndefined(instance.op, truth);
    return truth;
  }

  /// `made`: outputs whose choices are taken where they are right; may be null.
  Result<Truth> Compute(const ops::Instance& instance, const cases::Materialised& inputs,
                        const TensorMap* made) {
    const Randomness randomness = RandomnessOf(inputs.inputs);
    KeptRun kept, kept_of_dependent;
    const auto run = [&](const TensorMap& all) -> Result<Truth> {
      ASSAY_TRY(Truth truth, Run(instance, inputs.axes, randomness, all, kept));
      if (!randomness.independent || !RepeatsItsTerms(inputs.inputs, truth)) return truth;
      return Run(instance, inputs.axes, {.independent = false, .exchangeable = false}, all,
                 kept_of_dependent);
    };
    if (!instance.op.Chooses()) return run(inputs.inputs);
    return TruthOfChoices(instance, inputs, made, run);
  }

  template <class Kept>
  std::shared_ptr<const Kept> Find(Lru<std::shared_ptr<const Kept>>& kept, std::string_view key) {
    const std::lock_guard lock(mutex);
    const auto* const found = kept.Find(key);
    if (found == nullptr) return nullptr;
    ++counts.known;
    return *found;
  }
  template <class Kept>
  std::shared_ptr<const Kept> Keep(Lru<std::shared_ptr<const Kept>>& kept, std::string key,
                                   Kept computed) {
    auto shared = std::make_shared<const Kept>(std::move(computed));
    const std::lock_guard lock(mutex);
    ++counts.computed;
    const std::size_t bytes = BytesOf(*shared) + key.size();
    kept.Keep(std::move(key), shared, bytes);
    return shared;
  }
};

Oracle::Oracle(engine::Compiler& compiler, engine::Engine& engine)
    : impl_(std::make_unique<Impl>(compiler, engine)) {}
Oracle::~Oracle() = default;

void Oracle::Serve(std::unique_ptr<TruthSource> source) {
  impl_->sources.push_back(std::move(source));
}

Status Oracle::Check(const ops::Instance& instance) {
  ASSAY_TRY(TruthSource* const source, impl_->SourceOf(instance));
  return source->Check(instance);
}

Status Oracle::Prepare(const ops::Instance& instance) {
  ASSAY_TRY(TruthSource* const source, impl_->SourceOf(instance));
  return source->Prepare(instance);
}

Result<cases::Materialised> Oracle::Materialise(const ops::Instance& instance,
                                                const cases::Case& value) {
  ASSAY_TRY(cases::Materialised filled,
            cases::MaterialisePlain(instance, value, &impl_->input_store));
  if (instance.op.generator) ASSAY_TRY_VOID(impl_->generator.Fill(instance, value, filled));
  return filled;
}

Result<std::shared_ptr<const Truth>> Oracle::Evaluate(const ops::Instance& instance,
                                                      const cases::Case& value,
                                                      const cases::Materialised& inputs) {
  if (instance.op.contract.accumulate == DType::kF64) {
    return Fail(ErrorKind::kUnsupported,
                "a contract with an f64 accumulator needs a truth beyond f64",
                instance.op.name + ": /precision/accumulate", "choose f32");
  }
  std::string key = KeyOf(instance, value);
  if (auto found = impl_->Find(impl_->whole, key)) return found;
  ASSAY_TRY(Truth truth, impl_->Compute(instance, inputs, nullptr));
  return impl_->Keep(impl_->whole, std::move(key), std::move(truth));
}

Result<std::shared_ptr<const Truth>> Oracle::EvaluateFor(const ops::Instance& instance,
                                                         const cases::Case& value,
                                                         const cases::Materialised& inputs,
                                                         const TensorMap& outputs) {
  ASSAY_TRY(std::shared_ptr<const Truth> truth, Evaluate(instance, value, inputs));
  if (!instance.op.Chooses() || ChoseAlike(instance.op, *truth, outputs)) return truth;
  std::string key = KeyOf(instance, value) + " chosen";
  for (const ops::TensorSpec& spec : instance.op.outputs) {
    if (spec.relation.kind != ops::Relation::Kind::kChoice) continue;
    const std::span<const std::byte> bytes = outputs.find(spec.name)->second.memory.bytes();
    key += " " + Sha256Hex(bytes);
  }
  if (auto found = impl_->Find(impl_->whole, key)) return found;
  ASSAY_TRY(Truth theirs, impl_->Compute(instance, inputs, &outputs));
  return impl_->Keep(impl_->whole, std::move(key), std::move(theirs));
}

Result<SparseTruth> Oracle::EvaluateAt(const ops::Instance& instance, const cases::Case& value,
                                       const cases::Materialised& inputs,
                                       const SparseElements& wanted) {
  if (instance.op.Chooses()) return Chosen(instance);
  std::string key = KeyOfPart(instance, value, wanted, 0) + " ends";
  if (const auto found = impl_->Find(impl_->parts, key)) return *found;
  NumberType type;
  type.independent = false;
  ASSAY_TRY(TruthSource* const source, impl_->SourceOf(instance));
  ASSAY_TRY(const Cells cells, source->RunAt(instance, type, inputs.axes, inputs.inputs, wanted));
  return *impl_->Keep(impl_->parts, std::move(key), ReadPoints(instance, cells, wanted));
}

Result<SparseTruth> Oracle::EvaluateSlice(const ops::Instance& instance, const cases::Case& value,
                                          const cases::Materialised& inputs, SparseElements wanted,
                                          std::uint64_t seed, const PartEffort& effort) {
  if (instance.op.Chooses()) return Chosen(instance);
  std::string key = fmt::format("{} within {} {} {}", KeyOfPart(instance, value, wanted, seed),
                                effort.warp_steps, effort.few_warps, effort.few_warp_steps);
  if (const auto found = impl_->Find(impl_->parts, key)) return *found;
  NumberType type;
  type.independent = false;
  ASSAY_TRY(TruthSource* const source, impl_->SourceOf(instance));
  ASSAY_TRY(const Cells cells,
            source->RunSlice(instance, type, inputs.axes, inputs.inputs, seed, effort, wanted));
  return *impl_->Keep(impl_->parts, std::move(key), ReadPoints(instance, cells, wanted));
}

Result<SparseTruth> Oracle::EvaluateSome(const ops::Instance& instance, const cases::Case& value,
                                         const cases::Materialised& inputs,
                                         const SparseElements& wanted) {
  if (instance.op.Chooses()) return Chosen(instance);
  std::string key = KeyOfPart(instance, value, wanted, 0) + " of all";
  if (const auto found = impl_->Find(impl_->parts, key)) return *found;
  NumberType type;
  type.independent = false;
  ASSAY_TRY(TruthSource* const source, impl_->SourceOf(instance));
  ASSAY_TRY(const Cells cells, source->Run(instance, type, inputs.axes, inputs.inputs));
  return *impl_->Keep(impl_->parts, std::move(key), ReadPoints(instance, cells, wanted));
}

Oracle::Counts Oracle::counts() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->counts;
}

}  // namespace assay::oracle
