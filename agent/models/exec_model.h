// `exec/COMMAND`: any program as a model. The conversation goes to its standard input as text, the
// reply is its standard output.
//
// The command is split into words here (quotes and backslashes as in a shell, nothing else of one)
// and started without a shell, under a guard (guarded_program.h) that kills it and all that it
// started when the reply is complete, too long, too late or cancelled, and when we are killed
// ourselves. It sees the variables of a short list and those that the user names, so no key that
// was meant for another service. Several run at once, all served by Poll. A program that fails is an
// error with the end of what it wrote to standard error; it is not run again.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "agent/models/model.h"
#include "agent/models/secret.h"
#include "base/clock.h"

namespace assay::models {

struct ExecOptions {
  std::string command;
  std::vector<std::string> environment;  ///< "NAME=value" (ExecEnvironment); nothing is inherited.
  std::chrono::milliseconds total_timeout{1'800'000};
  std::size_t max_text_bytes = 4u << 20;
  std::size_t max_in_flight = 8;
};

/// Words of a command line: 'a b' and "a \" b" are one word each, \x is x.
Result<std::vector<std::string>> SplitCommand(std::string_view command);

/// The environment of a program: what most of them need (PATH, HOME, locale, proxies, certificates),
/// and the variables that `named` lists. Fails where one of those is not set.
Result<std::vector<std::string>> ExecEnvironment(const VariableReader& read,
                                                 const std::vector<std::string>& named);

/// Fails where the command cannot be split; a program that cannot be started fails each request.
Result<std::unique_ptr<Model>> MakeExecModel(ExecOptions options, Clock& clock);

}  // namespace assay::models
