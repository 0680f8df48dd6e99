// fake_service STATE TOKENS: the service with a judge that says of each request what the request says,
// for tests that kill it. Prints its port on a line, and serves until it is killed.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "serve/http_service.h"

int main(int argc, char** argv) {
  using namespace assay;
  ASSAY_CHECK(argc == 3, "fake_service STATE TOKENS");
  auto tokens = serve::Tokens::Load(argv[2]);
  ASSAY_CHECK(tokens.has_value(), tokens ? "" : ToString(tokens.error()));
  auto desk = serve::Desk::Open(argv[1], {.judges = 3}, [](const serve::Call& call, unsigned) {
    call.progress({.gate = "fake", .detail = "", .fraction = 0.5});
    return serve::Answer{.outcome = "accepted",
                         .reason = "",
                         .document = {{"of", *ParseJson(call.job.request, "request")}},
                         .certificate = {}};
  });
  ASSAY_CHECK(desk.has_value(), desk ? "" : ToString(desk.error()));
  auto service = serve::HttpService::Start(
      {}, *std::move(tokens), **desk,
      [](const std::string&, const std::string&, const std::string&) { return Status(); });
  ASSAY_CHECK(service.has_value(), service ? "" : ToString(service.error()));
  std::printf("%d\n", (*service)->port());
  std::fflush(stdout);
  while (true) ::pause();
}
