// What a compiler draws anew each time it makes a module: the number in names of internal linkage, by which they differ from
// those of other modules. Where nothing of a source has external linkage but instances of templates, it is no
// function of the source.
//
//   WithoutModuleIds(first) == WithoutModuleIds(again)   // the same program
#pragma once

#include <string>
#include <string_view>

namespace assay::facts {

/// The text without these numbers, and without sections for debuggers, which spell names out byte by byte. To be compared,
/// not to be parsed. Linear in the text.
std::string WithoutModuleIds(std::string_view ptx);

}  // namespace assay::facts
