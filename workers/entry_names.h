// Names of entries as a plan writes them, and as NVRTC finds them.
//
// NVRTC looks names up in a file of its own making, outside of all namespaces. What it says about
// them there is turned into words about the entry; an `extern "C"` kernel inside of a namespace,
// which it does not find by the only name that it has, is found in the PTX.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "workers/compile_log.h"

namespace assay::workers {

/// What NVRTC calls its file of names.
inline constexpr std::string_view kNameMap = "__nv_name_map";

/// Says which entry each diagnostic of that file is about.
void NameEntries(std::vector<Diagnostic>& diagnostics);

/// Of `names`, those that are plain and that NVRTC did not find. Before NameEntries.
std::vector<std::string> LostNames(const CompileLog& log, const std::vector<std::string>& names);

/// Has the module a kernel of exactly this name?
bool IsEntryOf(const std::string& ptx, const std::string& name);

}  // namespace assay::workers
