// What is fuzzed: one row for each reader of what others wrote. A target is a name and a function of any bytes; it returns whatever
// they are, and what must hold of them is checked with ASSAY_CHECK, which ends the program.
//
// Three programs run the table: assay_fuzz under libFuzzer (Clang, AddressSanitizer, UBSan), fuzz_seeds_test in every build over the
// seeds and what a few simple mutations make of them, and whoever wants to see one input again: assay_fuzz --target=NAME FILE.
//
// Adding a target: a function in one of the files beside this one, a row in targets.cc, seeds in seeds/NAME/.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "base/file.h"
#include "base/json.h"

namespace assay::fuzz {

struct Target {
  std::string_view name;
  void (*run)(std::string_view input);
  std::string_view about;  ///< What it reads, and who wrote that.
  std::string_view seeds;  ///< Folder of seeds from the repository's root; empty: fuzz/seeds/NAME.
};

std::span<const Target> Targets();
const Target* FindTarget(std::string_view name);
Path SeedFolder(const Target& target);

// The rows' functions, by the file that holds them.

// documents.cc: files of ops, plans and verdicts
void OpJson(std::string_view input);
void LaunchJson(std::string_view input);
void SanitizePlan(std::string_view input);
void Counterexample(std::string_view input);
void Verdict(std::string_view input);
void Expression(std::string_view input);
void Prices(std::string_view input);

// records.cc: run folders, transcripts, corpora
void Events(std::string_view input);
void RunRequest(std::string_view input);
void Transcript(std::string_view input);
void Certificate(std::string_view input);
void Candidates(std::string_view input);
void Judgement(std::string_view input);
void Packed(std::string_view input);
void CorpusFile(std::string_view input);

// service.cc: clients of the service, agents, signed folders
void Envelope(std::string_view input);
void Mcp(std::string_view input);
void ServiceCheck(std::string_view input);

// replies.cc: servers and models
void OpenAiReply(std::string_view input);
void AnthropicReply(std::string_view input);
void Refusals(std::string_view input);
void ReplyText(std::string_view input);
void Source(std::string_view input);

// workers.cc: both ends of the jail's socket, and what a worker reads
void Frames(std::string_view input);
void CompileReply(std::string_view input);
void Report(std::string_view input);
void CompileLog(std::string_view input);
void Cubin(std::string_view input);

// programs.cc: the emulator
void Ptx(std::string_view input);
void Requests(std::string_view input);

/// An error that a reader gave has a message, on a place of `file`.
void CheckError(const Error& error, std::string_view file);

/// A folder for inputs that are read from disk, made once, removed at exit.
const Path& ScratchFolder();
/// Writes without waiting for the disk.
void Put(const Path& file, std::string_view text);

/// `input` read as JSON and given to `read` where it is JSON.
void WithJson(std::string_view input, std::string_view file,
              const std::function<void(const Json&)>& read);

/// What a reader made of `json`, written and read again, is the same document.
template <class T, class Read>
void CheckRoundTrip(const T& value, Read read) {
  const std::string text = CompactJson(ToJson(value));
  const auto document = ParseJson(text, "again");
  ASSAY_CHECK(document.has_value(), text);
  const auto again = read(*document, "again");
  ASSAY_CHECK(again.has_value(), again ? std::string() : ToString(again.error()) + "\n" + text);
  ASSAY_CHECK(CompactJson(ToJson(*again)) == text, text);
}

}  // namespace assay::fuzz
