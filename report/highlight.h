// CUDA C++ cut into what a reader tells apart: keywords, types, the device's own names, numbers, strings, comments, directives.
//
// A lexer, not a parser: it never fails, and every byte of the source stands in exactly one token of exactly one line, in order.
// Linear; pure.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace assay::report {

enum class TokenKind : std::uint8_t {
  kPlain,
  kName,
  kKeyword,
  kType,
  kDevice,  ///< threadIdx, __syncthreads, atomicAdd, __shfl_xor_sync
  kNumber,
  kString,
  kComment,
  kDirective,
};

struct Token {
  TokenKind kind = TokenKind::kPlain;
  std::string_view text;  ///< Of the source.
  bool operator==(const Token&) const = default;
};
using TokenLine = std::vector<Token>;

/// One entry a line, without its newline.
std::vector<TokenLine> Highlight(std::string_view source);

/// The barriers that stand on a line, e.g. "__syncthreads()"; empty where there is none.
std::string_view BarrierOn(const TokenLine& line);

}  // namespace assay::report
