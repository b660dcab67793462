// Runs the tests of a folder. GANYMEDE_TESTED names a file of tests that are left out, as CI does in the release build
// with most of those that have passed under the sanitizers: lines "program<TAB>Suite.Name", as tools/tests_ran.py
// --repeated writes them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>

namespace {

void leave_out(const std::string& file, const std::string& program) {
  std::ifstream lines(file);
  if (!lines) {
    std::cerr << "GANYMEDE_TESTED: " << file << " cannot be read\n";
    std::exit(2);
  }
  std::string& filter = testing::GTEST_FLAG(filter);
  filter += filter.find('-') == std::string::npos ? "-" : ":";
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(program + '\t')) filter += line.substr(program.size() + 1) + ':';
  }
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  if (const char* file = std::getenv("GANYMEDE_TESTED")) leave_out(file, std::filesystem::path(argv[0]).filename());
  return RUN_ALL_TESTS();
}
