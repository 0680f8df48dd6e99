#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "validator/execution/execution.h"

namespace assay {
namespace {

/// The launches before which a buffer's life begins and ends.
struct Life {
  std::size_t first = 0;
  std::size_t end = std::numeric_limits<std::size_t>::max();
  bool Holds(std::size_t launch) const { return launch >= first && launch < end; }
};

Status Malformed(std::string message, std::size_t buffer) {
  return Fail(ErrorKind::kMalformedInput, std::move(message),
              fmt::format("execution: /buffers/{}/reuse", buffer),
              "name an earlier buffer, and a launch after that one's first");
}

}  // namespace

Status CheckReuse(const Execution& execution) {
  const std::vector<BufferSpec>& buffers = execution.buffers;
  const bool any = std::ranges::any_of(
      buffers, [](const BufferSpec& buffer) { return buffer.reuse.has_value(); });
  if (!any) return {};
  std::vector<Life> lives(buffers.size());
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    if (!buffers[i].reuse) continue;
    const auto [taken, launch] = *buffers[i].reuse;
    if (taken >= i) return Malformed("takes over a buffer that does not come before it", i);
    if (launch >= execution.launches.size()) return Malformed("there is no such launch", i);
    if (launch <= lives[taken].first)
      return Malformed("takes over a buffer before that one was used", i);
    if (lives[taken].end != Life{}.end)
      return Malformed("takes over a buffer that another has taken over", i);
    lives[taken].end = lives[i].first = launch;
  }
  for (std::size_t l = 0; l < execution.launches.size(); ++l) {
    for (const Argument& argument : execution.launches[l].args) {
      if (argument.kind == Argument::Kind::kScalar || argument.buffer >= lives.size()) continue;
      if (lives[argument.buffer].Holds(l)) continue;
      return Fail(ErrorKind::kMalformedInput,
                  fmt::format("argument '{}' names a buffer that is freed, or not there yet",
                              argument.name),
                  fmt::format("execution: /launches/{}/args", l));
    }
  }
  return {};
}

}  // namespace assay
