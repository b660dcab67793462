// libFuzzer's entry points. All targets are one program: the environment's GANYMEDE_FUZZ_TARGET names one, or the
// program's own name does, as in fuzz_scenario.
//
//   fuzz --targets             the names, each with the files of its reader
//   fuzz --dictionary NAME     the words of the target's documents
//   fuzz --borrowed NAME       the corpora that it borrows: for each its name, a tab and the first line of its inputs

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "target.hpp"

using namespace ganymede;

namespace {

std::string chosen_name(const char* program = "") {
  static const std::string name = [&] {
    const char* named = std::getenv("GANYMEDE_FUZZ_TARGET");
    constexpr std::string_view kPrefix = "fuzz_";
    const std::string file = std::filesystem::path(program).filename().string();
    return named != nullptr ? named : file.starts_with(kPrefix) ? file.substr(kPrefix.size()) : "";
  }();
  return name;
}

const fuzz::Target& chosen() {
  static const fuzz::Target& row = fuzz::target(chosen_name());
  return row;
}

}  // namespace

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  if (*argc == 2 && std::strcmp((*argv)[1], "--targets") == 0) {
    fuzz::print_targets();
    std::exit(0);
  }
  if (*argc == 3 && std::strcmp((*argv)[1], "--dictionary") == 0) {
    fuzz::print_dictionary(fuzz::target((*argv)[2]).schema);
    std::exit(0);
  }
  if (*argc == 3 && std::strcmp((*argv)[1], "--borrowed") == 0) {
    for (const fuzz::Borrowed& row : fuzz::target((*argv)[2]).borrows)
      std::printf("%s\t%s\n", std::string(row.corpus).c_str(), std::string(row.line).c_str());
    std::exit(0);
  }
  if (chosen_name((*argv)[0]).empty()) {
    std::fprintf(stderr, "fuzz: GANYMEDE_FUZZ_TARGET names no target; --targets lists them\n");
    std::exit(2);
  }
  (void)chosen();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::try_input(chosen(), {reinterpret_cast<const char*>(data), size});
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  RandomStream random(seed, "fuzz");
  const std::string text = fuzz::changed_by(chosen(), {reinterpret_cast<const char*>(data), size}, random);
  if (!text.empty() && text.size() <= max_size) {
    std::copy(text.begin(), text.end(), data);
    return text.size();
  }
  return LLVMFuzzerMutate(data, size, max_size);
}
