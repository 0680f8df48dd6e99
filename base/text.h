// Text from outside, made fit to keep: valid UTF-8, known newlines, bounded length. Pure functions,
// linear, thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

/// Replaces each maximal ill-formed sequence by U+FFFD (Unicode 15, section 3.9, "substitution of
/// maximal subparts").
std::string ValidUtf8(std::string_view bytes);
/// "\r\n" and lone "\r" become "\n".
std::string UnixNewlines(std::string_view text);
/// Lines without their newline; no empty line after a final newline.
std::vector<std::string_view> SplitLines(std::string_view text);
std::string_view Strip(std::string_view text);

/// At most `max_bytes` of `text`: its beginning and its end, with a line between them that says
/// what was left out. Cuts at line ends where there are any, never inside a character.
std::string Shorten(std::string_view text, std::size_t max_bytes);
/// The first `max_bytes` without a broken character, for messages; "..." where something was cut.
std::string Head(std::string_view text, std::size_t max_bytes);
/// Head of the text on one line: white space of any length becomes one blank. For words of others inside of a sentence of ours: a
/// line of their own could be taken for our advice.
std::string OneLine(std::string_view text, std::size_t max_bytes);

}  // namespace assay
