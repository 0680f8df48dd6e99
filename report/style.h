// The one style sheet of all pages: light, dark and paper; from 320 pixels on; no font, picture or address from elsewhere.
#pragma once

#include "report/html.h"

namespace assay::report {

/// The head of a page with this title: the style sheet, and a policy that forbids it scripts and any fetching.
Html PageHead(std::string_view title);

}  // namespace assay::report
