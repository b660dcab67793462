// The stand-in as the module of a whole program: the machine, with one GPU or GANYMEDE_STAND_IN_GPUS of them, is there
// as long as the program.

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "stand_in.hpp"

namespace ganymede::kernel::stand_in {
namespace {

struct WholeProgram {
  WholeProgram() {
    const char* gpus = std::getenv("GANYMEDE_STAND_IN_GPUS");
    begin({.devices = gpus == nullptr ? 1 : std::atoi(gpus)});
  }
  /// Ends the program with exit code 70 if the stand-in found something wrong.
  ~WholeProgram() {
    const auto violations = end();
    for (const std::string& violation : violations) std::fprintf(stderr, "the stand-in: %s\n", violation.c_str());
    if (violations.empty()) return;
    std::fflush(nullptr);
    ::_exit(70);
  }
};
const WholeProgram whole_program;

}  // namespace
}  // namespace ganymede::kernel::stand_in
