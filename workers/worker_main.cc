// assay-worker KIND: serves one kind of request over a socket, in a jail that the orchestrator
// made. Not meant to be started by hand.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstddef>
#include <cstdio>
#include <string>
#include <vector>

#include "base/heap.h"
#include "sandbox/policies.h"
#include "sandbox/serve.h"
#include "workers/service_table.h"

namespace assay::workers {
namespace {

int Complain(const std::string& what) {
  fmt::print(stderr, "assay-worker: {}\n", what);
  return 3;
}

/// Of requests that come one after the other: registers of as many blocks as a device holds take hundreds of megabytes.
constexpr std::size_t kKept = std::size_t{512} << 20;

int Main(int argc, char** argv) {
  KeepFreedMemory(kKept);
  std::string kind_name;
  int socket = sandbox::kWorkerSocket;
  bool no_jail = false;
  WorkerContext context;
  std::string nvrtc, builtins;
  std::vector<std::string> includes;

  CLI::App app("Serves requests of `assay`, which starts it", "assay-worker");
  app.add_option("kind", kind_name, "compile, emulate, gpu or gpu_tool")->required();
  app.add_option("--fd", socket, "the socket's descriptor");
  app.add_flag("--no-jail", no_jail, "there is no jail around this process");
  app.add_option("--nvrtc", nvrtc, "libnvrtc.so");
  app.add_option("--builtins", builtins, "libnvrtc-builtins.so");
  app.add_option("--include", includes, "a folder of headers");
  app.add_option("--gpu", context.gpu, "the number of the GPU");
  app.add_option("--matrix-library", context.libraries.matrices, "libcublasLt.so");
  app.add_option("--tensor-library", context.libraries.tensors, "libcudnn.so");
  CLI11_PARSE(app, argc, argv);

  context.compiler.nvrtc = nvrtc;
  context.compiler.builtins = builtins;
  context.compiler.includes.assign(includes.begin(), includes.end());
  const auto kind = sandbox::ParseWorkerKind(kind_name);
  for (const ServiceRow& row : Services()) {
    if (row.kind != kind) continue;
    const Result<sandbox::Service> service = row.make(context);
    if (!service) return Complain(ToString(service.error()));
    sandbox::ServeOptions options{kind_name, socket, sandbox::PolicyFor(*kind)};
    if (no_jail) options.policy.Allow(sandbox::Weakening::kNoJail);
    return sandbox::Serve(options, *service);
  }
  return Complain("no service of this kind: '" + kind_name + "'");
}

}  // namespace
}  // namespace assay::workers

int main(int argc, char** argv) { return assay::workers::Main(argc, argv); }
