// Source as a listing: highlighted, numbered, with marks on the lines that matter.
//
// A listing shows whole files (cut where they are long) or only what is near its marks. Line numbers are drawn by the style sheet,
// so that what is copied is the source.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "report/diff.h"
#include "report/html.h"

namespace assay::report {

enum class MarkKind : std::uint8_t { kGuilty, kOther, kOrigin, kUnreached };

/// Said about a line, below it.
struct Mark {
  std::uint32_t line = 0;  ///< 1-based; marks beyond the source are not shown.
  MarkKind kind = MarkKind::kGuilty;
  std::string note;
};

/// Lines around the marks, with `context` more on each side; gaps say how many lines they leave out.
Html Excerpt(std::string_view source, std::span<const Mark> marks, std::uint32_t context);
/// The source from its first line; what is beyond the limit is counted in words.
Html Listing(std::string_view source, std::span<const Mark> marks);
/// Hunks of a difference, highlighted as the text after and the text before.
Html DiffListing(std::span<const Change> changes);

}  // namespace assay::report
