#include "validator/engine/toolbox.h"

#include <algorithm>
#include <array>

namespace assay::engine {
namespace {

/// Null where what compiles cannot be found: then nothing is compiled either.
std::shared_ptr<const CompileStore> StoreIn(const Path& folder, const sandbox::PoolOptions& pool) {
  const auto launch = sandbox::StandardLaunch(pool, sandbox::WorkerKind::kCompile);
  const auto toolkit = sandbox::FindToolkit(pool.toolkit);
  if (!launch || !toolkit) return nullptr;
  const std::array<Path, 3> files = {launch->program, toolkit->nvrtc, toolkit->builtins};
  std::string stamp = StampOf(files);
  if (stamp.empty()) return nullptr;
  return std::make_shared<const CompileStore>(folder, std::move(stamp));
}

}  // namespace

Result<std::unique_ptr<Toolbox>> Toolbox::Create(Options options) {
  options.pool.unsafe_no_jail = !options.jail;
  options.gpu.devices = static_cast<unsigned>(std::max<std::size_t>(options.pool.gpus.size(), 1));
  if (!options.turns.empty()) {
    const std::vector<int> first = {0};
    for (const int number : options.pool.gpus.empty() ? first : options.pool.gpus)
      options.gpu.turns.push_back(options.turns / ("gpu-" + std::to_string(number) + ".turn"));
  }
  options.pool = sandbox::Completed(std::move(options.pool));
  if (!options.compilations.empty())
    options.compiler.store = StoreIn(options.compilations, options.pool);
  ASSAY_TRY(std::unique_ptr<sandbox::WorkerPool> pool, sandbox::WorkerPool::Create(options.pool));
  return std::unique_ptr<Toolbox>(new Toolbox(std::move(pool), options));
}

}  // namespace assay::engine
