// Runs the tests of a folder. Where GANYMEDE_TESTED names a file of tests that have passed in another build, as CI does
// after the build with the sanitizers, those are left out, but for the first of each suite and for those whose names
// say that they compare bytes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <unordered_set>

namespace {

/// The tests of this program ("Suite.Name") in a file whose lines are "program<TAB>Suite.Name", as tools/tests_ran.py
/// --passed writes them.
std::unordered_set<std::string> tested(const std::string& file, const std::string& program) {
  std::ifstream lines(file);
  if (!lines) {
    std::cerr << "GANYMEDE_TESTED: " << file << " cannot be read\n";
    std::exit(2);
  }
  std::unordered_set<std::string> names;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(program + '\t')) names.insert(line.substr(program.size() + 1));
  }
  return names;
}

void leave_out(const std::unordered_set<std::string>& names) {
  std::string& filter = testing::GTEST_FLAG(filter);
  filter += filter.find('-') == std::string::npos ? "-" : ":";
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int s = 0; s < all.total_test_suite_count(); ++s) {
    const testing::TestSuite& suite = *all.GetTestSuite(s);
    for (int t = 1; t < suite.total_test_count(); ++t) {
      const std::string name = std::string(suite.name()) + '.' + suite.GetTestInfo(t)->name();
      if (names.contains(name) && name.find("Bytes") == std::string::npos) filter += name + ':';
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  if (const char* file = std::getenv("GANYMEDE_TESTED")) {
    leave_out(tested(file, std::filesystem::path(argv[0]).filename()));
  }
  return RUN_ALL_TESTS();
}
