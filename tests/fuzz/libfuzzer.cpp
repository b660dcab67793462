// libFuzzer's entry points. GANYMEDE_FUZZ_TARGET names the target, because all of them are one program.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "target.hpp"

using namespace ganymede;

namespace {

const fuzz::Target& chosen() {
  static const fuzz::Target& row = fuzz::target(std::getenv("GANYMEDE_FUZZ_TARGET"));
  return row;
}

}  // namespace

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  const char* name = std::getenv("GANYMEDE_FUZZ_TARGET");
  if (*argc == 2 && std::strcmp((*argv)[1], "--targets") == 0) {
    fuzz::print_targets();
    std::exit(0);
  }
  if (name == nullptr) {
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
  // One change in four is made byte by byte: what is no JSON any more must be refused too.
  if (!chosen().schema.empty() && seed % 4 != 0) {
    RandomStream random(seed, "fuzz");
    const std::string text =
        fuzz::changed_by_schema({reinterpret_cast<const char*>(data), size}, chosen().schema, random);
    if (!text.empty() && text.size() <= max_size) {
      std::copy(text.begin(), text.end(), data);
      return text.size();
    }
  }
  return LLVMFuzzerMutate(data, size, max_size);
}
