#include "importers/python.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "sandbox/jail.h"

namespace assay::importers {
namespace {

constexpr std::uint64_t kMiB = 1ull << 20;
constexpr std::uint64_t kGiB = 1ull << 30;
constexpr std::uint64_t kLargestAnswer = 64 * kMiB;
constexpr std::uint64_t kLargestMemory = 16 * kGiB;

// The numbers under which the process finds what it was given; 5 is the filter's (sandbox/jail.cc).
constexpr int kRequestFd = 3;
constexpr int kAnswerFd = 4;
constexpr int kDataFd = 6;

constexpr std::string_view kHow =
    "fetch it with scripts/fetch_torch.sh, or name a Python that has it with --python";

// Prints where a Python keeps what it needs.
constexpr const char* kAsk =
    "import importlib.util as u, json, sys, sysconfig as c; p = c.get_paths(); "
    "print('ASSAY' + json.dumps({'version': sys.version.split()[0], 'torch': u.find_spec('torch') "
    "is "
    "not None, 'folders': [sys.prefix, sys.base_prefix, p['stdlib'], p['platstdlib'], "
    "p['purelib'], "
    "p['platlib']]}))";

Result<UniqueFd> MemoryFile(const char* name, std::span<const std::byte> content) {
  UniqueFd file(::memfd_create(name, MFD_CLOEXEC));
  if (!file) {
    return Fail(ErrorKind::kEnvironment,
                fmt::format("cannot make a memory file: {}", std::strerror(errno)), "import");
  }
  while (!content.empty()) {
    const ssize_t written = ::write(file.get(), content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      return Fail(ErrorKind::kEnvironment,
                  fmt::format("cannot fill a memory file: {}", std::strerror(errno)), "import");
    }
    content = content.subspan(static_cast<std::size_t>(written));
  }
  ::lseek(file.get(), 0, SEEK_SET);
  return file;
}

Result<std::string> Content(int fd) {
  struct stat info{};
  if (::fstat(fd, &info) != 0 || static_cast<std::uint64_t>(info.st_size) > kLargestAnswer) {
    return Fail(ErrorKind::kMalformedInput, "its answer is too large", "problem");
  }
  std::string text(static_cast<std::size_t>(info.st_size), '\0');
  std::size_t got = 0;
  while (got < text.size()) {
    const ssize_t n = ::pread(fd, text.data() + got, text.size() - got, static_cast<off_t>(got));
    if (n <= 0) break;
    got += static_cast<std::size_t>(n);
  }
  text.resize(got);
  return text;
}

/// The last line that a program wrote, on one line.
std::string LastWords(const std::string& output) {
  const std::size_t end = output.find_last_not_of(" \n");
  if (end == std::string::npos) return {};
  const std::size_t start = output.rfind('\n', end);
  return output.substr(
      start == std::string::npos ? 0 : start + 1,
      std::min<std::size_t>(end - (start == std::string::npos ? 0 : start + 1) + 1, 300));
}

bool Exists(const Path& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

}  // namespace

Result<Python> DescribePython(const Path& program) {
  sandbox::Command command;
  command.argv = {program.string(), "-I", "-c", kAsk};
  command.environment = {"LANG=C.UTF-8"};
  ASSAY_TRY(sandbox::Process process, sandbox::Process::Start(command));
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  const Result<sandbox::Exit> exit = process.Wait(deadline);
  const std::string output = process.OutputTail();
  const std::size_t at = output.rfind("ASSAY{");
  if (!exit || exit->signalled || exit->code != 0 || at == std::string::npos) {
    return Fail(ErrorKind::kEnvironment, "it does not answer: " + LastWords(output),
                program.string(), "name a Python 3.10 or newer with --python");
  }
  ASSAY_TRY(const Json json, ParseJson(output.substr(at + 5), program.string()));
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(json, program.string()));
  Python python;
  python.program = program;
  ASSAY_TRY(python.version, reader.Required<std::string>("version"));
  ASSAY_TRY(python.has_torch, reader.Required<bool>("torch"));
  ASSAY_TRY(const auto folders, reader.Required<std::vector<std::string>>("folders"));
  for (const std::string& folder : folders) {
    const Path path = Path(folder).lexically_normal();
    if (!path.is_absolute() || !Exists(path)) continue;
    // A prefix of /usr or / is the system's: its libraries are bound anyway, the rest is not needed.
    if (path == "/" || path == "/usr" || path == "/usr/local") continue;
    const bool inside = std::ranges::any_of(python.folders, [&](const Path& other) {
      const Path rest = path.lexically_relative(other);
      return !rest.empty() && *rest.begin() != "..";
    });
    if (!inside) python.folders.push_back(path);
  }
  return python;
}

Result<Python> FindPython(const std::string& explicit_program,
                          const std::function<std::string(const char*)>& environment) {
  std::vector<Path> candidates;
  const std::string named =
      explicit_program.empty() ? environment("ASSAY_PYTHON") : explicit_program;
  if (!named.empty()) {
    candidates.push_back(named.find('/') == std::string::npos
                             ? sandbox::FindProgram(named, environment("PATH"))
                             : std::filesystem::absolute(named));
    if (candidates.front().empty() || !Exists(candidates.front())) {
      return Fail(ErrorKind::kEnvironment, "there is no such program", named,
                  "name a Python 3.10 or newer with --python");
    }
  } else {
    for (Path folder = ProgramFolder(); !folder.empty(); folder = folder.parent_path()) {
      if (const Path python = folder / ".deps/torch/bin/python3"; Exists(python)) {
        candidates.push_back(python);
        break;
      }
      if (folder == folder.root_path()) break;
    }
    if (Path python = sandbox::FindProgram("python3", environment("PATH")); !python.empty())
      candidates.push_back(std::move(python));
  }
  Error last{ErrorKind::kEnvironment, "there is no Python", "python3", std::string(kHow)};
  for (const Path& candidate : candidates) {
    Result<Python> python = DescribePython(candidate);
    if (!python) {
      last = std::move(python).error();
    } else if (python->has_torch) {
      return python;
    } else {
      last = {ErrorKind::kEnvironment,
              fmt::format("Python {} has no torch, which importing needs (judging does not)",
                          python->version),
              candidate.string(), std::string(kHow)};
    }
  }
  return std::unexpected(std::move(last));
}

Result<Path> PackageFolder() {
  for (Path folder = ProgramFolder(); !folder.empty(); folder = folder.parent_path()) {
    for (const char* below : {"importers", "share/assay/importers"}) {
      if (Exists(folder / below / "assay_import/__main__.py")) return folder / below;
    }
    if (folder == folder.root_path()) break;
  }
  return Fail(ErrorKind::kEnvironment, "the package assay_import is not beside the program",
              ProgramFolder().string(), "run assay from its source tree, or install it again");
}

sandbox::Policy ImportPolicy(const Python& python, const Path& package, const Path& problem) {
  sandbox::Policy policy("import");
  policy.SystemLibraries()
      .Proc()
      // torch opens it as it is loaded; getrandom() will not do.
      .Devices("/dev", "urandom")
      .Tmpfs("/tmp", 512 * kMiB)
      .Environment("LANG", "C.UTF-8")
      .Environment("HOME", "/tmp")
      .Environment("TMPDIR", "/tmp")
      .Environment("USER", "assay")
      .Environment("PYTHONDONTWRITEBYTECODE", "1")
      .Environment("CUDA_VISIBLE_DEVICES", "")
      .Allow(sandbox::SyscallSet::kRuntime)
      .Allow(sandbox::SyscallSet::kThreads)
      .Allow(sandbox::SyscallSet::kTempFiles)
      .Limit(sandbox::Resource::kOpenFiles, 1024)
      .Limit(sandbox::Resource::kCpuSeconds, 1200)
      .Limit(sandbox::Resource::kFileBytes, kLargestAnswer)
      .Limit(sandbox::Resource::kAddressSpace, kLargestMemory);
  for (const Path& folder : python.folders) {
    if (!folder.native().starts_with("/usr/lib")) policy.ReadOnly(folder, folder);
  }
  // The program itself, and what a venv's link leads to, where no folder holds them.
  std::error_code error;
  const Path real = std::filesystem::canonical(python.program, error);
  for (const Path& program : {python.program, real}) {
    const bool bound =
        program.empty() || std::ranges::any_of(policy.read_only(), [&](const sandbox::Bind& bind) {
          const Path rest = program.lexically_relative(bind.source);
          return !rest.empty() && *rest.begin() != "..";
        });
    if (!bound) policy.ReadOnly(program, program);
  }
  policy.ReadOnly(package / "assay_import", "/assay/assay_import");
  if (std::filesystem::is_directory(problem, error)) {
    policy.ReadOnly(problem, "/problem");
  } else {
    policy.ReadOnly(problem, "/problem/problem.py");
  }
  return policy;
}

Result<Json> RunInJail(const Python& python, const Path& problem, Json request,
                       std::span<const std::byte> data, const RunOptions& options) {
  Path package = options.package;
  if (package.empty()) {
    ASSAY_TRY(package, PackageFolder());
  }
  sandbox::Policy policy = ImportPolicy(python, package, problem);
  Path bubblewrap;
  if (options.unsafe_no_jail) {
    policy.Allow(sandbox::Weakening::kNoJail).Environment("PYTHONPATH", package.string());
  } else {
    policy.Environment("PYTHONPATH", "/assay");
    ASSAY_TRY(const sandbox::JailReport report, sandbox::ProbeJail());
    if (!report.works) return std::unexpected(report.AsError());
    bubblewrap = report.bubblewrap;
  }
  std::error_code error;
  const bool folder = std::filesystem::is_directory(problem, error);
  request["path"] = options.unsafe_no_jail ? problem.string()
                    : folder               ? std::string("/problem")
                                           : std::string("/problem/problem.py");
  if (request.contains("check")) request["check"]["data"] = kDataFd;
  const std::string text = request.dump();
  ASSAY_TRY(const UniqueFd asked, MemoryFile("request", std::as_bytes(std::span(text))));
  ASSAY_TRY(const UniqueFd answer, MemoryFile("answer", {}));
  ASSAY_TRY(const UniqueFd values, MemoryFile("data", data));
  const sandbox::JailedCommand command{
      .program = python.program,
      .arguments = {"-s", "-m", "assay_import", std::to_string(kRequestFd),
                    std::to_string(kAnswerFd)},
      .fds = {{asked.get(), kRequestFd}, {answer.get(), kAnswerFd}, {values.get(), kDataFd}}};
  ASSAY_TRY(sandbox::Process process, sandbox::StartJailed(policy, command, bubblewrap));
  const Result<sandbox::Exit> ended = process.Wait(std::chrono::steady_clock::now() + options.time);
  if (!ended) {
    process.Kill();
    return Fail(ErrorKind::kLimit,
                fmt::format("it was not imported within {} seconds", options.time.count()),
                problem.string(), "look for an endless loop, or make the example smaller");
  }
  const sandbox::Exit exit = sandbox::DecodeJailedExit(policy, *ended);
  const std::string said = LastWords(process.OutputTail());
  if (exit.signalled || exit.code != 0) {
    if (said.contains("MemoryError") || said.contains("allocate memory") ||
        said.contains("DefaultCPUAllocator")) {
      return Fail(
          ErrorKind::kLimit, "memory ran out while it was imported: " + said, problem.string(),
          fmt::format("make the example smaller; {} GiB are allowed", kLargestMemory / kGiB));
    }
    return Fail(ErrorKind::kMalformedInput,
                fmt::format("it ended the process that imports it ({}){}", exit.Describe(),
                            said.empty() ? "" : ": " + said),
                problem.string(), "see what the file does when it is loaded and called");
  }
  ASSAY_TRY(const std::string content, Content(answer.get()));
  if (content.empty()) {
    return Fail(ErrorKind::kMalformedInput,
                "it ended the process that imports it before there was an answer", problem.string(),
                "see what the file does when it is loaded and called");
  }
  return ParseJson(content, "what the import of " + problem.string() + " answered");
}

}  // namespace assay::importers
