#include "bench/processor_time.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <system_error>

namespace assay {
namespace {

struct Times {
  pid_t parent = 0;
  double ticks = 0;
};

/// Of /proc/PID/stat: what follows the name, which may hold anything.
Times Read(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::string text;
  std::getline(stream, text);
  const std::size_t name = text.rfind(')');
  if (name == std::string::npos) return {};
  std::istringstream rest(text.substr(name + 1));
  std::string skipped;
  Times times;
  rest >> skipped >> times.parent;
  constexpr int kBetween = 9;  // From the process group to the faults of children.
  for (int i = 0; i < kBetween; ++i) rest >> skipped;
  constexpr int kTimes = 4;  // utime, stime, and those of children that were waited for.
  for (int i = 0; i < kTimes; ++i) {
    double ticks = 0;
    rest >> ticks;
    times.ticks += ticks;
  }
  return times;
}

}  // namespace

double ProcessorSecondsOfAll() {
  std::map<pid_t, Times> all;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    all.emplace(static_cast<pid_t>(std::stol(name)), Read(entry.path() / "stat"));
  }
  double ticks = 0;
  for (const auto& [pid, times] : all) {
    pid_t above = pid;
    while (above != ::getpid()) {
      const auto found = all.find(above);
      if (found == all.end() || found->second.parent == above) break;
      above = found->second.parent;
    }
    if (above == ::getpid()) ticks += times.ticks;
  }
  return ticks / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

}  // namespace assay
