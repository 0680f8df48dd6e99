#include "report/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/text.h"

namespace assay::report {

std::string Count(std::uint64_t value) {
  constexpr std::string_view kUnits[] = {"M", "G", "T", "P", "E"};
  if (value < 1'000'000) {
    return value < 1000 ? fmt::format("{}", value)
                        : fmt::format("{},{:03}", value / 1000, value % 1000);
  }
  double scaled = static_cast<double>(value) / 1e6;
  std::size_t unit = 0;
  while (scaled >= 1000 && unit + 1 < std::size(kUnits)) {
    scaled /= 1000;
    ++unit;
  }
  return fmt::format("{:.3g} {}", scaled, kUnits[unit]);
}

std::string Duration(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "unknown";
  if (seconds < 10) return fmt::format("{:.1f} s", seconds);
  if (seconds < 59.5) return fmt::format("{:.0f} s", seconds);
  const auto whole = static_cast<std::uint64_t>(std::min(seconds + 0.5, 1e15));
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole / 60 % 60);
}

std::string Bytes(std::uint64_t bytes) {
  constexpr std::string_view kUnits[] = {"KB", "MB", "GB", "TB"};
  if (bytes < 1024) return fmt::format("{} bytes", bytes);
  double scaled = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  while (scaled >= 1024 && unit + 1 < std::size(kUnits)) {
    scaled /= 1024;
    ++unit;
  }
  return fmt::format("{:.1f} {}", scaled, kUnits[unit]);
}

std::string Number(double value) { return fmt::format("{:.4g}", value); }

std::string Dollars(double usd) {
  return usd > 0 && usd < 1 ? fmt::format("${:.4f}", usd) : fmt::format("${:.2f}", usd);
}

std::string Spaced(std::string_view word) {
  std::string spaced(word);
  std::ranges::replace(spaced, '_', ' ');
  return spaced;
}

std::string Plural(std::uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", Count(count), noun, count == 1 ? "" : "s");
}

std::string Moment(std::string_view stamp) {
  const bool usual = stamp.size() >= 20 && stamp[4] == '-' && stamp[10] == 'T' &&
                     stamp[13] == ':' && stamp.ends_with('Z');
  if (!usual) return Head(stamp, 40);
  return fmt::format("{} {} UTC", stamp.substr(0, 10), stamp.substr(11, 5));
}

}  // namespace assay::report
