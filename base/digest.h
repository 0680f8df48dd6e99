// SHA-256, as lower-case hex: the one digest that names sources, ops, prompts and tensors in records.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace assay {

std::string Sha256Hex(std::span<const std::byte> bytes);
std::string Sha256Hex(std::string_view text);

}  // namespace assay
