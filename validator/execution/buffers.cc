// The rules of what an execution says of its buffers over time.
#include <fmt/format.h>

#include <limits>
#include <vector>

#include "validator/execution/execution.h"

namespace assay {
namespace {

/// The launches before which a buffer's life begins and ends.
struct Life {
  static constexpr std::size_t kForEver = std::numeric_limits<std::size_t>::max();
  std::size_t first = 0;
  std::size_t end = kForEver;
  bool Holds(std::size_t launch) const { return launch >= first && launch < end; }
};

Status MalformedReuse(std::string message, std::size_t buffer) {
  return Fail(ErrorKind::kMalformedInput, std::move(message),
              fmt::format("execution: /buffers/{}/reuse", buffer),
              "name an earlier buffer, and a launch after that one's first");
}

Result<std::vector<Life>> LivesOf(const Execution& execution) {
  const std::vector<BufferSpec>& buffers = execution.buffers;
  std::vector<Life> lives(buffers.size());
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    if (!buffers[i].reuse) continue;
    const auto [taken, launch] = *buffers[i].reuse;
    std::string wrong;
    if (taken >= i) {
      wrong = "takes over a buffer that does not come before it";
    } else if (launch >= execution.launches.size()) {
      wrong = "there is no such launch";
    } else if (launch <= lives[taken].first) {
      wrong = "takes over a buffer before that one was used";
    } else if (lives[taken].end != Life::kForEver) {
      wrong = "takes over a buffer that another has taken over";
    }
    if (!wrong.empty()) return std::unexpected(MalformedReuse(std::move(wrong), i).error());
    lives[taken].end = lives[i].first = launch;
  }
  return lives;
}

}  // namespace

Status CheckBuffers(const Execution& execution) {
  ASSAY_TRY(const std::vector<Life> lives, LivesOf(execution));
  for (std::size_t l = 0; l < execution.launches.size(); ++l) {
    const Launch& launch = execution.launches[l];
    for (const Argument& argument : launch.args) {
      if (argument.kind == Argument::Kind::kScalar || argument.buffer >= lives.size()) continue;
      if (lives[argument.buffer].Holds(l)) continue;
      return Fail(ErrorKind::kMalformedInput,
                  fmt::format("argument '{}' names a buffer that is freed, or not there yet",
                              argument.name),
                  fmt::format("execution: /launches/{}/args", l));
    }
    for (const std::uint32_t buffer : launch.fresh) {
      const bool filled = buffer < lives.size() && lives[buffer].Holds(l) &&
                          execution.buffers[buffer].role != BufferRole::kInput;
      if (filled) continue;
      return Fail(ErrorKind::kMalformedInput,
                  fmt::format("{} is no buffer that lives then and can be filled anew", buffer),
                  fmt::format("execution: /launches/{}/fresh", l));
    }
  }
  return {};
}

}  // namespace assay
