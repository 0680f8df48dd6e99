#include "runs/vetted_loaders.h"

#include "base/digest.h"

namespace assay::runs {

Result<std::map<std::string, std::string>> LoadersOf(const LoaderSources& sources) {
  const ops::Instance& instance = sources.instance;
  ASSAY_TRY(const Json launch, ParseJson(sources.launch, "launch.json"));
  ASSAY_TRY(const ops::LaunchPlan plan, ops::ParseLaunchPlan(launch, "launch.json", instance.op));
  std::map<std::string, loaders::Reach> reach;
  for (const verdict::AxisReach& axis : sources.ledger.axes()) {
    reach[axis.axis] = {.whole = axis.whole, .in_slices = axis.in_slices, .at_ends = axis.at_ends};
  }
  ASSAY_TRY(loaders::Loader loader,
            loaders::MakeLoader(
                {.instance = instance,
                 .plan = plan,
                 .symbols = sources.symbols,
                 .reach = std::move(reach),
                 .images = {{"kernel." + instance.arch + ".cubin", Sha256Hex(sources.cubin)},
                            {"kernel.ptx", Sha256Hex(sources.ptx)}}}));
  return std::map<std::string, std::string>{{"kernel.py", std::move(loader.python)},
                                            {"kernel.hpp", std::move(loader.cpp)}};
}

}  // namespace assay::runs
