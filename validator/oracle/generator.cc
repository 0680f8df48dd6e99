#include "validator/oracle/generator.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "base/json.h"
#include "validator/cases/profiles.h"
#include "validator/oracle/cells.h"
#include "validator/oracle/oracle.h"

namespace assay::oracle {
namespace {

ops::Instance AsOp(const ops::Instance& instance) {
  ops::Instance made = instance;
  made.op = ops::GeneratorOf(instance.op);
  return made;
}

/// Of what a generator makes as many elements at each end as see values of inputs that are zero but for their ends
/// (cases::kLastElements), where each sees its share of an input, and some beyond them.
std::int64_t ElementsAtEnds(const cases::Materialised& filled, std::int64_t made) {
  constexpr std::int64_t kBeyond = 16, kMost = std::int64_t{1} << 14;
  std::int64_t most = 0;
  for (const auto& [name, input] : filled.inputs) {
    if (input.elements <= cases::kLastElements) continue;
    const std::int64_t each = std::max<std::int64_t>(input.elements / made, 1);
    most = std::max(most, cases::kLastElements / each + kBeyond);
  }
  return std::min(most, kMost);
}

const Cell* CellsOf(const Cells& cells, const std::string& name) {
  return reinterpret_cast<const Cell*>(cells.find(name)->second.memory.bytes().data());
}

}  // namespace

Status Generator::FillWhole(const ops::Instance& made, const cases::Materialised& filled,
                            TensorMap& tensors) {
  ASSAY_TRY(const Cells cells, runner_.Run(made, {}, filled.axes, filled.inputs));
  for (auto& [name, tensor] : tensors) {
    const Cell* const data = CellsOf(cells, name);
    for (std::int64_t i = 0; i < tensor.elements; ++i) tensor.Set(i, data[i].value);
  }
  return {};
}

Status Generator::FillEnds(const ops::Instance& made, const cases::Materialised& filled,
                           TensorMap& tensors) {
  // Where each takes long, some of many leave gaps; of few, all are computed.
  Status done;
  for (const EndsSize& size : {EndsSize{256, 16}, EndsSize{20, 2}}) {
    done = FillEnds(made, filled, size, tensors);
    if (done || done.error().kind != ErrorKind::kLimit) break;
  }
  return done;
}

Status Generator::FillEnds(const ops::Instance& made, const cases::Materialised& filled,
                           const EndsSize& size, TensorMap& tensors) {
  Wanted wanted;
  for (const auto& [name, tensor] : tensors) {
    const std::int64_t at_each_end =
        std::max(size.at_each_end, ElementsAtEnds(filled, tensor.elements));
    const std::int64_t last = tensor.elements - at_each_end;
    // Those between lie at least that far from each other and from the ends.
    const std::int64_t apart = std::min<std::int64_t>(at_each_end, 4096);
    if (tensor.elements > kMostWhole || last <= at_each_end + (size.between + 1) * apart)
      return Fail(ErrorKind::kLimit, "it makes too many elements, or each of too many", name);
    std::vector<std::int64_t>& elements = wanted[name];
    for (std::int64_t i = 0; i < at_each_end; ++i) elements.push_back(i);
    for (std::int64_t i = 1; i <= size.between; ++i)
      elements.push_back(at_each_end + (last - at_each_end) / (size.between + 1) * i);
    for (std::int64_t i = last; i < tensor.elements; ++i) elements.push_back(i);
  }
  // Of one run no more than so many are computed.
  constexpr std::size_t kAtOnce = 1024;
  for (auto& [name, tensor] : tensors) {
    const std::vector<std::int64_t>& asked = wanted[name];
    std::vector<std::int64_t> computed;
    std::vector<double> values;
    for (std::size_t first = 0; first < asked.size(); first += kAtOnce) {
      const std::size_t count = std::min(kAtOnce, asked.size() - first);
      Wanted some;
      some[name].assign(asked.begin() + static_cast<std::ptrdiff_t>(first),
                        asked.begin() + static_cast<std::ptrdiff_t>(first + count));
      ASSAY_TRY(const Cells cells, runner_.RunSlice(made, {}, filled.axes, filled.inputs,
                                                    /*seed=*/0, {}, some));
      const Cell* const data = CellsOf(cells, name);
      for (const std::int64_t i : some[name]) {
        computed.push_back(i);
        values.push_back(data[i].value);
      }
    }
    // What was computed at both ends without a gap.
    std::size_t front = 0, back = computed.size();
    while (front < computed.size() && computed[front] == static_cast<std::int64_t>(front)) ++front;
    for (std::int64_t i = tensor.elements; back > 0 && computed[back - 1] == i - 1; --i) --back;
    if (front == 0 || front >= back || back == computed.size())
      return Fail(ErrorKind::kLimit, "even its ends take too long", name);
    // The innermost of either end are like what lies between.
    const double between = values[front];
    for (std::size_t i = front - 1; i <= back; ++i) {
      if (values[i] != between)
        return Fail(ErrorKind::kLimit, "it makes other values between the ends", name);
    }
    for (std::int64_t i = 0; i < tensor.elements; ++i) tensor.Set(i, between);
    for (std::size_t i = 0; i < computed.size(); ++i) tensor.Set(computed[i], values[i]);
  }
  return {};
}

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
    const bool whole = whole_ || cases::TotalElements(instance, value.axes) <= kMostWhole;
    const Status made_all =
        whole ? FillWhole(made, filled, tensors) : FillEnds(made, filled, tensors);
    if (!made_all) return std::unexpected(WithPlace(made_all.error(), "generator"));
    Keep(std::move(key), tensors);
  }
  filled.inputs.merge(std::move(tensors));
  return {};
}

}  // namespace assay::oracle
