// judge OP FOLDER: judges FOLDER/kernel.cu with FOLDER/launch.json, and prints what is wrong with it.
#include <assay/environment.h>
#include <assay/judge.h>

#include <fstream>
#include <iostream>
#include <sstream>

namespace {

std::string Text(const std::string& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

int Complain(const assay::api::Error& error) {
  std::cerr << "error: " << ToString(error) << '\n';
  return 3;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace assay::api;
  if (argc != 3) {
    std::cerr << "usage: judge OP FOLDER\n";
    return 3;
  }
  auto judge = Judge::Make(Environment::Installed());
  if (!judge) return Complain(judge.error());

  const std::string folder = argv[2];
  const Candidate candidate{Text(folder + "/kernel.cu"), Text(folder + "/launch.json")};
  const auto verdict = judge->Check({.op = argv[1], .effort = Effort::kQuick}, candidate);
  if (!verdict) return Complain(verdict.error());

  std::cout << Name(verdict->outcome) << ": " << verdict->reason << '\n';
  for (const Counterexample& shown : verdict->counterexamples) {
    std::cout << "\n" << shown.gate << " refutes it at " << shown.description << "\n\n";
    for (const Finding& finding : shown.findings) std::cout << finding.text;
  }
  return verdict->outcome == Outcome::kAccepted ? 0 : 1;
}
