#include "validator/oracle/describe.h"

#include <fmt/format.h>

namespace assay::oracle {

std::vector<std::int64_t> IndexOf(const Shape& shape, std::size_t flat) {
  std::vector<std::int64_t> index(shape.size());
  auto rest = static_cast<std::int64_t>(flat);
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    index[axis] = rest % shape[axis];
    rest /= shape[axis];
  }
  return index;
}

std::string Subscript(const std::vector<std::int64_t>& index) {
  std::string text;
  for (const std::int64_t i : index) text += (text.empty() ? "[" : ", ") + std::to_string(i);
  return text.empty() ? text : text + "]";
}

std::string RowName(const Shape& shape, std::size_t row) {
  if (shape.size() < 2) return "the whole output";
  const Shape outer(shape.begin(), shape.end() - 1);
  const std::string subscript = Subscript(IndexOf(outer, row));
  return "row " + (outer.size() == 1 ? std::to_string(row) : subscript);
}

std::string Terms(double contributions) {
  return fmt::format("{:.0f} {}", contributions, contributions == 1 ? "term" : "terms");
}

std::string Histogram(const Groups& groups) {
  std::string text;
  for (std::size_t bin = 0; bin < groups.ulps.size(); ++bin) {
    if (groups.ulps[bin] == 0) continue;
    const std::string upto = bin < 2 ? std::to_string(bin)
                             : bin + 1 < groups.ulps.size()
                                 ? fmt::format("up to {}", std::uint64_t{1} << (bin - 1))
                                 : "more";
    text += fmt::format("{}{} ulp: {:.3g} %", text.empty() ? "" : ", ", upto,
                        100 * static_cast<double>(groups.ulps[bin]) / groups.bias.elements);
  }
  return text;
}

}  // namespace assay::oracle
