#include "loaders/loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>

#include "loaders/declaration.h"
#include "ops/names.h"

namespace assay::loaders {
namespace {

bool IsMadeOf(std::string_view text, std::string_view others) {
  return !text.empty() && std::ranges::all_of(text, [&](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || others.contains(c);
  });
}

std::unexpected<Error> Bad(std::string_view what, std::string_view name) {
  return Fail(ErrorKind::kMalformedInput,
              fmt::format("{} is called '{}', which cannot stand in a program", what, name),
              "kernel.py, kernel.hpp");
}

// Readers have seen to all of this; a loader is a program, so it is not left to them.
Status Check(const LoaderInput& input) {
  const ops::OpSpec& op = input.instance.op;
  if (!ops::IsIdentifier(op.name)) return Bad("the op", op.name);
  if (!IsMadeOf(input.instance.arch, "_")) return Bad("the target", input.instance.arch);
  for (const ops::Axis& axis : op.axes) {
    if (!ops::IsIdentifier(axis.name)) return Bad("an axis", axis.name);
  }
  for (const auto* tensors : {&op.inputs, &op.outputs}) {
    for (const ops::TensorSpec& tensor : *tensors) {
      if (!ops::IsIdentifier(tensor.name)) return Bad("a tensor", tensor.name);
    }
  }
  for (const auto& [variable, dtype] : input.instance.binding) {
    if (!ops::IsIdentifier(variable)) return Bad("a dtype variable", variable);
  }
  for (const auto& [name, digest] : input.images) {
    if (!IsMadeOf(name, "._") || !IsMadeOf(digest, "")) return Bad("a file", name);
  }
  for (const ops::KernelPlan& kernel : input.plan.kernels) {
    const auto symbol = input.symbols.find(kernel.entry);
    if (!ops::IsEntryName(kernel.entry) || symbol == input.symbols.end() ||
        !IsMadeOf(symbol->second, "_$."))
      return Bad("a kernel", kernel.entry);
  }
  return {};
}

}  // namespace

Result<Loader> MakeLoader(const LoaderInput& input) {
  ASSAY_TRY_VOID(Check(input));
  return Loader{.python = WritePython(input), .cpp = WriteCpp(input)};
}

}  // namespace assay::loaders
