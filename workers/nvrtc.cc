#include "workers/nvrtc.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <nvrtc.h>

#include <algorithm>

namespace assay::workers {

/// The functions that are used, with the types of the header.
#define ASSAY_NVRTC_FUNCTIONS(X) \
  X(nvrtcVersion)                \
  X(nvrtcGetNumSupportedArchs)   \
  X(nvrtcGetSupportedArchs)      \
  X(nvrtcGetErrorString)         \
  X(nvrtcCreateProgram)          \
  X(nvrtcDestroyProgram)         \
  X(nvrtcAddNameExpression)      \
  X(nvrtcCompileProgram)         \
  X(nvrtcGetProgramLogSize)      \
  X(nvrtcGetProgramLog)          \
  X(nvrtcGetPTXSize) X(nvrtcGetPTX) X(nvrtcGetCUBINSize) X(nvrtcGetCUBIN) X(nvrtcGetLoweredName)

struct Nvrtc::Api {
#define X(name) decltype(&::name) name = nullptr;
  ASSAY_NVRTC_FUNCTIONS(X)
#undef X
};

namespace {

constexpr std::string_view kCure =
    "install the CUDA Toolkit 12 or 13, or name one in ASSAY_CUDA_ROOT";

std::unexpected<Error> LoadError(const Path& library) {
  const char* reason = ::dlerror();
  return Fail(ErrorKind::kEnvironment,
              fmt::format("cannot open NVRTC: {}", reason != nullptr ? reason : "no reason given"),
              library.string(), std::string(kCure));
}

/// The size function, then the data function, of one of NVRTC's results. Sizes count a final NUL
/// where there is text.
template <class SizeFunction, class DataFunction>
std::string Fetch(SizeFunction size, DataFunction data, nvrtcProgram program) {
  std::size_t bytes = 0;
  if (size(program, &bytes) != NVRTC_SUCCESS || bytes == 0) return {};
  std::string text(bytes, '\0');
  if (data(program, text.data()) != NVRTC_SUCCESS) return {};
  return text;
}

std::string FetchText(auto size, auto data, nvrtcProgram program) {
  std::string text = Fetch(size, data, program);
  text.resize(std::min(text.find('\0'), text.size()));
  return text;
}

/// Destroys the program at the end of the scope.
struct ProgramOwner {
  decltype(&::nvrtcDestroyProgram) destroy;
  nvrtcProgram program = nullptr;
  ~ProgramOwner() {
    if (program != nullptr) destroy(&program);
  }
};

bool HasNul(const CompileJob& job) {
  const auto has = [](const std::string& text) { return text.find('\0') != std::string::npos; };
  const auto header_has = [&](const VirtualHeader& h) { return has(h.name) || has(h.text); };
  return has(job.source) || has(job.file) || std::ranges::any_of(job.headers, header_has) ||
         std::ranges::any_of(job.options, has) || std::ranges::any_of(job.names, has);
}

}  // namespace

Nvrtc::Nvrtc(std::unique_ptr<Api> api) : api_(std::move(api)) {}
Nvrtc::Nvrtc(Nvrtc&&) noexcept = default;
Nvrtc& Nvrtc::operator=(Nvrtc&&) noexcept = default;
Nvrtc::~Nvrtc() = default;

Result<Nvrtc> Nvrtc::Open(const Path& library, const Path& builtins) {
  // Never closed: NVRTC keeps threads-local state that does not survive dlclose.
  if (!builtins.empty() && ::dlopen(builtins.c_str(), RTLD_NOW | RTLD_GLOBAL) == nullptr) {
    return LoadError(builtins);
  }
  void* handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return LoadError(library);
  auto api = std::make_unique<Api>();
#define X(name)                                                                    \
  api->name = reinterpret_cast<decltype(&::name)>(::dlsym(handle, #name));         \
  if (api->name == nullptr) {                                                      \
    return Fail(ErrorKind::kEnvironment, "this NVRTC is too old: it lacks " #name, \
                library.string(), std::string(kCure));                             \
  }
  ASSAY_NVRTC_FUNCTIONS(X)
#undef X
  Nvrtc nvrtc(std::move(api));
  int count = 0;
  if (nvrtc.api_->nvrtcVersion(&nvrtc.version_.major, &nvrtc.version_.minor) != NVRTC_SUCCESS ||
      nvrtc.api_->nvrtcGetNumSupportedArchs(&count) != NVRTC_SUCCESS || count < 0) {
    return Fail(ErrorKind::kEnvironment, "NVRTC does not answer", library.string(),
                std::string(kCure));
  }
  nvrtc.architectures_.resize(static_cast<std::size_t>(count));
  nvrtc.api_->nvrtcGetSupportedArchs(nvrtc.architectures_.data());
  std::ranges::sort(nvrtc.architectures_);
  return nvrtc;
}

Result<Compilation> Nvrtc::Compile(const CompileJob& job) const {
  if (HasNul(job)) {
    return Fail(ErrorKind::kMalformedInput, "the source holds a NUL byte", job.file,
                "send the kernel as plain text");
  }
  std::vector<const char*> header_texts, header_names, options;
  for (const VirtualHeader& header : job.headers) {
    header_texts.push_back(header.text.c_str());
    header_names.push_back(header.name.c_str());
  }
  for (const std::string& option : job.options) options.push_back(option.c_str());

  ProgramOwner owner{api_->nvrtcDestroyProgram};
  const auto broken = [&](nvrtcResult result) {
    const ErrorKind kind =
        result == NVRTC_ERROR_OUT_OF_MEMORY ? ErrorKind::kLimit : ErrorKind::kEnvironment;
    return Fail(kind, fmt::format("NVRTC cannot compile: {}", api_->nvrtcGetErrorString(result)),
                job.file);
  };
  nvrtcResult result = api_->nvrtcCreateProgram(
      &owner.program, job.source.c_str(), job.file.c_str(), static_cast<int>(job.headers.size()),
      header_texts.data(), header_names.data());
  if (result != NVRTC_SUCCESS) return broken(result);
  for (const std::string& name : job.names) {
    result = api_->nvrtcAddNameExpression(owner.program, name.c_str());
    if (result != NVRTC_SUCCESS) return broken(result);
  }
  result =
      api_->nvrtcCompileProgram(owner.program, static_cast<int>(options.size()), options.data());
  if (result == NVRTC_ERROR_OUT_OF_MEMORY || result == NVRTC_ERROR_INVALID_INPUT)
    return broken(result);

  Compilation compilation;
  compilation.ok = result == NVRTC_SUCCESS;
  compilation.status = api_->nvrtcGetErrorString(result);
  compilation.log =
      FetchText(api_->nvrtcGetProgramLogSize, api_->nvrtcGetProgramLog, owner.program);
  // No fault of the source: it must not refute a kernel.
  if (result == NVRTC_ERROR_INVALID_OPTION) {
    return Fail(
        ErrorKind::kUsage,
        "NVRTC refuses its options: " + compilation.log.substr(0, compilation.log.find('\n')),
        job.file, "name a target and options that this NVRTC knows");
  }
  if (!compilation.ok) return compilation;
  compilation.ptx = FetchText(api_->nvrtcGetPTXSize, api_->nvrtcGetPTX, owner.program);
  compilation.cubin = Fetch(api_->nvrtcGetCUBINSize, api_->nvrtcGetCUBIN, owner.program);
  for (const std::string& name : job.names) {
    const char* lowered = nullptr;
    if (api_->nvrtcGetLoweredName(owner.program, name.c_str(), &lowered) == NVRTC_SUCCESS &&
        lowered != nullptr) {
      compilation.lowered.emplace_back(name, lowered);
    }
  }
  return compilation;
}

}  // namespace assay::workers
