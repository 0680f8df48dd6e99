#include <unistd.h>

#include <array>
#include <cstdlib>
#include <fstream>

#include "fuzz/target.h"

namespace assay::fuzz {
namespace {

constexpr std::array kTargets{
    Target{"op_json", &OpJson, "op.json, by whoever writes an op", ""},
    Target{"launch_json", &LaunchJson, "launch.json, by a model", ""},
    Target{"sanitize_plan", &SanitizePlan, "a launch file of assay sanitize", ""},
    Target{"counterexample", &Counterexample, "a counterexample from elsewhere", ""},
    Target{"verdict", &Verdict, "a verdict in a record", ""},
    Target{"expression", &Expression, "an expression over axes, by a model", ""},
    Target{"prices", &Prices, "a price table", ""},
    Target{"events", &Events, "events.jsonl of a run folder from anybody", ""},
    Target{"run_request", &RunRequest, "the request that a run folder records", ""},
    Target{"transcript", &Transcript, "a transcript from anybody", ""},
    Target{"certificate", &Certificate, "the certificate of a vetted folder from anybody", ""},
    Target{"envelope", &Envelope, "certificate and signature of a vetted folder from anybody", ""},
    Target{"mcp", &Mcp, "a session of a client of assay mcp", ""},
    Target{"service_check", &ServiceCheck, "a check that a client of assay serve asks for", ""},
    Target{"candidates", &Candidates, "lines of assay reward, by a trainer and a model", ""},
    Target{"judgement", &Judgement, "a kept judgement", ""},
    Target{"packed", &Packed, "a compressed text of a corpus", ""},
    Target{"corpus_file", &CorpusFile, "a corpus from elsewhere (SQLite)", ""},
    Target{"openai_reply", &OpenAiReply, "what a server answers: events, documents", ""},
    Target{"anthropic_reply", &AnthropicReply, "what a server answers: events, documents", ""},
    Target{"refusals", &Refusals, "what a server refuses with: JSON, HTML, headers", ""},
    Target{"reply_text", &ReplyText, "what a model writes", ""},
    Target{"source", &Source, "CUDA source, by a model", ""},
    Target{"frames", &Frames, "frames from a worker that runs hostile code", ""},
    Target{"compile_reply", &CompileReply, "what a compile worker answers", ""},
    Target{"report", &Report, "what an emulate worker answers", ""},
    Target{"compile_log", &CompileLog, "NVRTC's log of a hostile source", ""},
    Target{"cubin", &Cubin, "machine code that NVRTC made of a hostile source", ""},
    Target{"ptx", &Ptx, "PTX", "validator/ptx/testdata/golden"},
    Target{"requests", &Requests, "programs under launches, in the emulator", ""},
};

class Scratch {
 public:
  Scratch() {
    // Memory where there is any: a fuzzer writes a file for each input.
    const bool memory = ::access("/dev/shm", W_OK) == 0;
    std::string pattern = memory ? "/dev/shm/assay-fuzz-XXXXXX" : "/tmp/assay-fuzz-XXXXXX";
    ASSAY_CHECK(::mkdtemp(pattern.data()) != nullptr, pattern);
    path_ = pattern;
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const Path& path() const { return path_; }

 private:
  Path path_;
};

}  // namespace

std::span<const Target> Targets() { return kTargets; }

const Target* FindTarget(std::string_view name) {
  for (const Target& target : kTargets) {
    if (target.name == name) return &target;
  }
  return nullptr;
}

Path SeedFolder(const Target& target) {
  const Path root = ASSAY_SOURCE_DIR;
  return target.seeds.empty() ? root / "fuzz/seeds" / target.name : root / target.seeds;
}

void CheckError(const Error& error, std::string_view file) {
  ASSAY_CHECK(!error.message.empty());
  ASSAY_CHECK(error.place.find(file) != std::string::npos, ToString(error));
}

const Path& ScratchFolder() {
  static const Scratch scratch;
  return scratch.path();
}

void Put(const Path& file, std::string_view text) {
  std::ofstream stream(file, std::ios::binary | std::ios::trunc);
  stream.write(text.data(), static_cast<std::streamsize>(text.size()));
}

void WithJson(std::string_view input, std::string_view file,
              const std::function<void(const Json&)>& read) {
  const auto json = ParseJson(input, file);
  if (!json) return CheckError(json.error(), file);
  read(*json);
}

}  // namespace assay::fuzz
