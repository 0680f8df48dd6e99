// The names that a CUDA source declares, read off its tokens (normalise.h says why and how far).
#pragma once

#include <set>
#include <span>
#include <string_view>

#include "dataset/tokens.h"

namespace assay::dataset {

struct Declared {
  std::set<std::string_view> names;    ///< Variables, functions, types, macros, labels.
  std::set<std::string_view> members;  ///< Of structs and unions of the source.
};

Declared FindDeclared(std::span<const Token> tokens);

/// Any keyword, or a type that CUDA headers declare.
bool IsReserved(std::string_view word);

}  // namespace assay::dataset
