// Numbers and names as people read them. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace assay::report {

/// "1,234", "12.3 M", "4.56 G": exact below a million.
std::string Count(std::uint64_t value);
/// "0.8 s", "12 s", "3 min 20 s", "2 h 5 min".
std::string Duration(double seconds);
/// "3.2 KB", "1.4 MB".
std::string Bytes(std::uint64_t bytes);
/// Four digits at most: "0.0123", "17.2", "1.2e-09", "nan".
std::string Number(double value);
/// "$0.0123", "$12.30".
std::string Dollars(double usd);
/// "data_race" as "data race".
std::string Spaced(std::string_view word);
/// "1 attempt", "3 attempts".
std::string Plural(std::uint64_t count, std::string_view noun);
/// "2026-01-31T12:00:00.123Z" as "2026-01-31 12:00 UTC"; other texts as they are, cut.
std::string Moment(std::string_view stamp);

}  // namespace assay::report
