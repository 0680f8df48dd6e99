// How much of a corpus is judged here. Judging all of it takes some three times as long as building
// Assay, and CI must end within an hour on any machine:
//
//   ASSAY_SHARE=I/N    every Nth of a corpus, from the Ith on (0 <= I < N), and one of each corpus
//                      at least. Unset: all of it.
//
// .ci/run chooses N by the time that is left and I by the commit, so that another part comes with
// each, and says both.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace assay::gates {

/// `text` as "I/N". Throws std::invalid_argument where it is not: a share that nobody understands
/// must not pass for all that was asked.
inline std::pair<std::size_t, std::size_t> ShareIn(std::string_view text) {
  std::size_t first = 0;
  std::size_t of = 0;
  const char* const end = text.data() + text.size();
  const auto head = std::from_chars(text.data(), end, first);
  if (head.ec == std::errc{} && head.ptr != end && *head.ptr == '/') {
    const auto tail = std::from_chars(head.ptr + 1, end, of);
    if (tail.ec == std::errc{} && tail.ptr == end && first < of) return {first, of};
  }
  throw std::invalid_argument("ASSAY_SHARE is '" + std::string(text) +
                              "'; it is I/N with 0 <= I < N, as 0/3");
}

/// What is judged here of all that a corpus holds: never nothing of it, since a corpus that nobody
/// looks at fails its test.
template <class T>
std::vector<T> Share(std::vector<T> all) {
  const char* const asked = std::getenv("ASSAY_SHARE");
  if (asked == nullptr || *asked == '\0') return all;
  const auto [first, of] = ShareIn(asked);
  std::vector<T> share;
  if (first >= all.size() && !all.empty()) share.push_back(std::move(all[first % all.size()]));
  for (std::size_t i = first; i < all.size(); i += of) share.push_back(std::move(all[i]));
  return share;
}

}  // namespace assay::gates
