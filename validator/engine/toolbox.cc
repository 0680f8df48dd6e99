#include "validator/engine/toolbox.h"

namespace assay::engine {

Result<std::unique_ptr<Toolbox>> Toolbox::Create(Options options) {
  options.pool.unsafe_no_jail = !options.jail;
  ASSAY_TRY(std::unique_ptr<sandbox::WorkerPool> pool, sandbox::WorkerPool::Create(options.pool));
  return std::unique_ptr<Toolbox>(new Toolbox(std::move(pool), options));
}

}  // namespace assay::engine
