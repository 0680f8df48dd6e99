#include "validator/oracle/generator.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "base/json.h"
#include "validator/oracle/cells.h"

namespace assay::oracle {
namespace {

ops::Instance AsOp(const ops::Instance& instance) {
  ops::Instance made = instance;
  made.op = ops::GeneratorOf(instance.op);
  return made;
}

}  // namespace

bool Generator::FillKept(const std::string& key, TensorMap& tensors) {
  const std::lock_guard lock(mutex_);
  const Bytes* const known = kept_.Find(key);
  if (known == nullptr) return false;
  for (const auto& [name, bytes] : *known) {
    const std::span<std::byte> to = tensors.find(name)->second.memory.bytes();
    std::memcpy(to.data(), bytes.data(), std::min(to.size(), bytes.size()));
  }
  return true;
}

void Generator::Keep(std::string key, const TensorMap& tensors) {
  Bytes inputs;
  std::size_t size = 0;
  for (const auto& [name, tensor] : tensors) {
    const std::span<const std::byte> bytes = tensor.memory.bytes();
    inputs[name].assign(bytes.begin(), bytes.end());
    size += bytes.size();
  }
  const std::lock_guard lock(mutex_);
  kept_.Keep(std::move(key), std::move(inputs), size);
}

Status Generator::Fill(const ops::Instance& instance, const cases::Case& value,
                       cases::Materialised& filled) {
  const ops::Instance made = AsOp(instance);
  TensorMap tensors;
  for (const ops::TensorSpec& spec : made.op.outputs) {
    ASSAY_TRY(Shape shape, ops::ResolveShape(spec, filled.axes));
    ASSAY_TRY(Tensor tensor, Tensor::Create(made.TypeOf(spec), std::move(shape)));
    tensors.emplace(spec.name, std::move(tensor));
  }
  cases::Case plain = value;
  plain.origin.clear();
  std::string key =
      instance.Id() + " " + instance.op.digest + " " + CompactJson(cases::ToJson(plain));
  if (!FillKept(key, tensors)) {
    const auto results = runner_.Run(made, {}, filled.axes, filled.inputs);
    if (!results) return std::unexpected(WithPlace(results.error(), "generator"));
    for (auto& [name, tensor] : tensors) {
      const Tensor& cells = results->find(name)->second;
      const auto* data = reinterpret_cast<const Cell*>(cells.memory.bytes().data());
      for (std::int64_t i = 0; i < tensor.elements; ++i) tensor.Set(i, data[i].value);
    }
    Keep(std::move(key), tensors);
  }
  filled.inputs.merge(std::move(tensors));
  return {};
}

}  // namespace assay::oracle
