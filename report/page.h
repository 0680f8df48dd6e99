// Whole pages: one self-contained HTML document each, with no scripts and nothing fetched, below 1 MB whatever the run holds.
#pragma once

#include <initializer_list>
#include <string>

#include "report/batch_view.h"
#include "report/html.h"
#include "report/run_view.h"

namespace assay::report {

/// Bytes that the pieces which may be long (sources, differences, plots) have together.
inline constexpr std::size_t kRationBytes = 480'000;

std::string RunPage(const RunView& run);
std::string BatchPage(const BatchView& batch);

/// A link to a section, shown where the section is there.
struct Link {
  Literal anchor;
  Literal words;
};
/// A document of header, navigation and sections.
std::string Whole(std::string_view title, const Html& header, std::initializer_list<Link> links,
                  const Html& sections);

}  // namespace assay::report
