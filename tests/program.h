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

/// `environment` entries ("NAME=VALUE") are added to this process's.
inline Ran RunProgram(const Path& program, const std::vector<std::string>& arguments,
                      const std::vector<std::string>& environment = {}) {
  const Scratch scratch;
  const std::string out = (scratch / "out").string();
  const std::string err = (scratch / "err").string();
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, out.c_str(), O_WRONLY | O_CREAT, 0600);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, err.c_str(), O_WRONLY | O_CREAT, 0600);
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

  Ran ran;
  pid_t child = 0;
  if (::posix_spawn(&child, program.c_str(), &actions, nullptr, argv.data(), envp.data()) == 0) {
    int status = 0;
    ::waitpid(child, &status, 0);
    ran.exit = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  posix_spawn_file_actions_destroy(&actions);
  ran.out = ReadFile(out).value_or("");
  ran.err = ReadFile(err).value_or("");
  return ran;
}

}  // namespace assay::tests
