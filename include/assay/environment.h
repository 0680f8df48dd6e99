// Where what Assay needs beside its own code lies on this machine: ops, prompts, the workers' program, the CUDA Toolkit, bubblewrap.
//
// One value, given to whoever judges or generates; nothing is compiled in, and nothing here reads a variable of the process. An
// installation may be moved as a whole: its parts are found from where the library, or the program that holds this code, lies.
//
//   const Environment environment = Environment::Installed();
//   Environment other = Environment::Installed("/opt/assay");
//   other.toolkit = "/usr/local/cuda-13.0";
#pragma once

#include <filesystem>
#include <vector>

namespace assay::api {

struct Environment {
  /// Folders whose folders are ops, in the order of search.
  std::vector<std::filesystem::path> ops;
  /// Holds system.md and task.md.
  std::filesystem::path prompts;
  /// Programs in other languages that a command runs: the writer of Parquet files.
  std::filesystem::path scripts;
  /// The program that runs in the jail: `assay-worker`.
  std::filesystem::path worker;
  /// Root of a CUDA Toolkit or of NVIDIA's wheels. Empty: the usual places are tried.
  std::filesystem::path toolkit;
  /// The program `bwrap`. Empty: /usr/local/bin, /usr/bin and /bin are tried.
  std::filesystem::path bubblewrap;
  /// Where compiled references outlive the process; made when there is something to keep. Only this user may write there. Empty:
  /// nothing is kept.
  std::filesystem::path cache = {};

  /// What `cmake --install` laid out below `prefix`.
  static Environment Installed(const std::filesystem::path& prefix);
  /// The installation that this code is part of: the nearest folder above it that holds share/assay. Its members are empty where there
  /// is none.
  static Environment Installed();
  /// The checkout `source`, with `assay-worker` built in `programs`.
  static Environment FromSourceTree(const std::filesystem::path& source,
                                    const std::filesystem::path& programs);
};

}  // namespace assay::api
