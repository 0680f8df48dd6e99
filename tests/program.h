// Runs a built program as a user would, and keeps what it said. For tests of the whole.
#pragma once

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "base/file.h"

namespace assay::tests {

struct Ran {
  int exit = -1;
  std::string out;
  std::string err;
};

/// A folder of its own below the system's temporary one, removed at the end.
class Scratch {
 public:
  Scratch() {
    std::string pattern = (std::filesystem::temp_directory_path() / "assay-test-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  const Path& path() const { return path_; }
  Path operator/(const std::string& name) const { return path_ / name; }

 private:
  Path path_;
};

/// Starts a program with its standard output and error in these files; the process id, or -1. `environment` entries ("NAME=VALUE")
/// are added to this process's.
inline pid_t StartProgram(const Path& program, const std::vector<std::string>& arguments,
                          const std::vector<std::string>& environment, const Path& out,
                          const Path& err = {}) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, out.c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (err.empty()) {
    posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  } else {
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, err.c_str(),
                                     O_WRONLY | O_CREAT | O_TRUNC, 0600);
  }
  std::vector<std::string> argv_text = {program.string()};
  argv_text.insert(argv_text.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& text : argv_text) argv.push_back(text.data());
  argv.push_back(nullptr);
  std::vector<std::string> env_text = environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::string name = text.substr(0, text.find('=') + 1);
    bool replaced = false;
    for (const std::string& added : environment) replaced = replaced || added.starts_with(name);
    if (!replaced) env_text.push_back(text);
  }
  std::vector<char*> envp;
  for (std::string& text : env_text) envp.push_back(text.data());
  envp.push_back(nullptr);
  pid_t child = -1;
  if (::posix_spawn(&child, program.c_str(), &actions, nullptr, argv.data(), envp.data()) != 0)
    child = -1;
  posix_spawn_file_actions_destroy(&actions);
  return child;
}

/// Runs it to its end.
inline Ran RunProgram(const Path& program, const std::vector<std::string>& arguments,
                      const std::vector<std::string>& environment = {}) {
  const Scratch scratch;
  Ran ran;
  const pid_t child =
      StartProgram(program, arguments, environment, scratch / "out", scratch / "err");
  if (child > 0) {
    int status = 0;
    ::waitpid(child, &status, 0);
    ran.exit = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  ran.out = ReadFile(scratch / "out").value_or("");
  ran.err = ReadFile(scratch / "err").value_or("");
  return ran;
}

}  // namespace assay::tests
