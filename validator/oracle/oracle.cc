#include "validator/oracle/oracle.h"

#include <list>
#include <mutex>

#include "base/json.h"
#include "ops/prelude.h"
#include "validator/oracle/cells.h"
#include "validator/oracle/generator.h"
#include "validator/oracle/randomness.h"
#include "validator/oracle/reference_run.h"

namespace assay::oracle {
namespace {

// Truths are kept while they fit; the one used longest ago goes first.
constexpr std::size_t kCacheBytes = std::size_t{512} << 20;

std::size_t BytesOf(const Truth& truth) {
  std::size_t bytes = 0;
  for (const auto& [name, output] : truth.outputs)
    bytes += output.value.size() * 4 * sizeof(double);
  return bytes;
}

/// What the reference's own order gives.
Result<void> AddInOrder(ReferenceRunner& runner, const ops::Instance& instance,
                        const cases::Materialised& inputs, Truth& truth) {
  NumberType separate{.kind = NumberType::Kind::kRounded,
                      .format = instance.op.contract.accumulate};
  NumberType fused = separate, bounded;
  fused.fused = true;
  bounded.in_order = true;
  ASSAY_TRY(const Cells first, runner.Run(instance, separate, inputs.axes, inputs.inputs));
  ASSAY_TRY(const Cells second, runner.Run(instance, fused, inputs.axes, inputs.inputs));
  ASSAY_TRY(const Cells slack, runner.Run(instance, bounded, inputs.axes, inputs.inputs));
  for (auto& [name, output] : truth.outputs)
    ReadInOrder(first.find(name)->second, second.find(name)->second, slack.find(name)->second,
                output);
  return {};
}

SparseTruth ReadPoints(const ops::Instance& instance, const Cells& cells,
                       const SparseElements& wanted) {
  SparseTruth truth;
  for (const auto& [name, elements] : wanted) {
    const ops::TensorSpec* spec = instance.op.FindOutput(name);
    const auto found = cells.find(name);
    if (spec == nullptr || found == cells.end()) continue;
    for (const std::int64_t index : elements) {
      if (const auto point = ReadCell(instance, *spec, found->second, index))
        truth[name].push_back(*point);
    }
  }
  return truth;
}

}  // namespace

struct Oracle::Impl {
  Impl(engine::Compiler& compiler, engine::Engine& engine) : runner(compiler, engine) {}

  ReferenceRunner runner;
  Generator generator{runner};
  std::mutex mutex;
  struct Entry {
    std::string key;
    std::shared_ptr<const Truth> truth;
  };
  std::list<Entry> entries;  // most recently used first
  std::size_t bytes = 0;

  std::shared_ptr<const Truth> Find(const std::string& key) {
    const std::lock_guard lock(mutex);
    for (auto entry = entries.begin(); entry != entries.end(); ++entry) {
      if (entry->key != key) continue;
      entries.splice(entries.begin(), entries, entry);
      return entry->truth;
    }
    return nullptr;
  }
  void Keep(std::string key, std::shared_ptr<const Truth> truth) {
    const std::lock_guard lock(mutex);
    bytes += BytesOf(*truth);
    entries.push_front({std::move(key), std::move(truth)});
    while (entries.size() > 1 && (bytes > kCacheBytes || entries.size() > 512)) {
      bytes -= BytesOf(*entries.back().truth);
      entries.pop_back();
    }
  }
};

Oracle::Oracle(engine::Compiler& compiler, engine::Engine& engine)
    : impl_(std::make_unique<Impl>(compiler, engine)) {}
Oracle::~Oracle() = default;

Status Oracle::Check(const ops::Instance& instance) { return impl_->runner.Check(instance); }

Result<cases::Materialised> Oracle::Materialise(const ops::Instance& instance,
                                                const cases::Case& value) {
  ASSAY_TRY(cases::Materialised filled, cases::MaterialisePlain(instance, value));
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
  std::string key =
      instance.Id() + " " + instance.op.digest + " " + CompactJson(cases::ToJson(value));
  if (auto found = impl_->Find(key)) return found;
  const Randomness randomness = RandomnessOf(inputs.inputs);
  NumberType type;
  type.independent = randomness.independent;
  type.trending = randomness.trending;
  ASSAY_TRY(const Cells cells, impl_->runner.Run(instance, type, inputs.axes, inputs.inputs));
  auto truth = std::make_shared<Truth>();
  for (const ops::TensorSpec& spec : instance.op.outputs) {
    OutputTruth output =
        ReadCells(instance, spec, cells.find(spec.name)->second, randomness.exchangeable);
    output.ordinary = output.ordinary && !TensorCoresApply(instance);
    truth->outputs[spec.name] = std::move(output);
  }
  if (!instance.op.contract.reassociation)
    ASSAY_TRY_VOID(AddInOrder(impl_->runner, instance, inputs, *truth));
  impl_->Keep(std::move(key), truth);
  return truth;
}

Result<SparseTruth> Oracle::EvaluateAt(const ops::Instance& instance,
                                       const cases::Materialised& inputs,
                                       const SparseElements& wanted) {
  NumberType type;
  type.independent = false;
  ASSAY_TRY(const Cells cells,
            impl_->runner.RunAt(instance, type, inputs.axes, inputs.inputs, wanted));
  return ReadPoints(instance, cells, wanted);
}

Result<SparseTruth> Oracle::EvaluateSlice(const ops::Instance& instance,
                                          const cases::Materialised& inputs, SparseElements wanted,
                                          std::uint64_t seed) {
  NumberType type;
  type.independent = false;
  ASSAY_TRY(const Cells cells,
            impl_->runner.RunSlice(instance, type, inputs.axes, inputs.inputs, seed, wanted));
  return ReadPoints(instance, cells, wanted);
}

}  // namespace assay::oracle
