// Prints PTX modules of all forms: conformance_ptx FORMS OUTPUT_FOLDER [programs]. Each module
// holds the kernels of up to 64 forms, or of the random programs made of them (programs.h).
#include <cstdio>
#include <fstream>
#include <iterator>

#include "tests/conformance/forms.h"
#include "tests/conformance/golden.h"
#include "tests/conformance/programs.h"

int main(int argc, char** argv) {
  using namespace assay::conformance;
  if (argc != 3 && argc != 4) {
    std::fprintf(stderr, "usage: conformance_ptx FORMS OUTPUT_FOLDER [programs]\n");
    return 3;
  }
  std::ifstream in(argv[1]);
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  std::vector<Form> forms = ParseForms(text);
  if (argc == 4) forms = RandomPrograms(forms, kPrograms, kProgramSeed);
  constexpr std::size_t kPerModule = kFormsPerModule;
  for (std::size_t first = 0; first < forms.size(); first += kPerModule) {
    std::ofstream out(std::string(argv[2]) + "/module" + std::to_string(first / kPerModule) +
                      ".ptx");
    out << ModuleHeader();
    for (std::size_t i = first; i < forms.size() && i < first + kPerModule; ++i) {
      out << "// " << forms[i].name << "\n"
          << WriteKernel(forms[i], "form" + std::to_string(i)).text;
    }
  }
  std::printf("%zu forms\n", forms.size());
  return 0;
}
