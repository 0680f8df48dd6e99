#include "validator/cases/input_store.h"

#include <sys/resource.h>

#include <algorithm>
#include <utility>

#include "base/limits.h"

namespace assay::cases {
namespace {

std::size_t MostFiles() {
  constexpr std::uint64_t kMost = 256;
  const auto limit = SoftLimit(LimitOf(RLIMIT_NOFILE));
  return static_cast<std::size_t>(limit ? std::min(kMost, *limit / 8) : kMost);
}

}  // namespace

InputStore::InputStore() : kept_(MostFiles(), kMostKeptInputBytes) {}

Result<Tensor> InputStore::Get(const std::string& key,
                               const std::function<Result<Tensor>()>& draw) {
  std::shared_ptr<const KeptTensor> known;
  {
    const std::lock_guard lock(mutex_);
    if (const auto* const found = kept_.Find(key)) known = *found;
  }
  if (known != nullptr) {
    if (Result<Tensor> tensor = known->Map()) return tensor;
  }
  ASSAY_TRY(Tensor drawn, draw());
  // What cannot be kept, for want of files, is handed on all the same.
  Result<KeptTensor> kept = KeptTensor::Of(drawn);
  if (!kept) return drawn;
  const std::size_t bytes = kept->BytesHeld() + key.size();
  auto shared = std::make_shared<const KeptTensor>(*std::move(kept));
  Result<Tensor> tensor = shared->Map();
  if (!tensor) return drawn;
  const std::lock_guard lock(mutex_);
  kept_.Keep(key, std::move(shared), bytes);
  return tensor;
}

}  // namespace assay::cases
