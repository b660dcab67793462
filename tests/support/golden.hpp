#pragma once
// Compares texts with files that are kept beside the tests. With UPDATE_GOLDEN=1 in the environment, the files are
// written anew instead.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace ganymede {

/// Fails the test if `text` differs from the file, whose path is relative to tests/, for example
/// "exports/golden/task.yaml".
inline void expect_golden(const std::string& file, const std::string& text) {
  const std::filesystem::path path = std::filesystem::path(GANYMEDE_SOURCE_DIR) / "tests" / file;
  if (std::getenv("UPDATE_GOLDEN") != nullptr) {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
    return;
  }
  std::ostringstream golden;
  golden << std::ifstream(path, std::ios::binary).rdbuf();
  EXPECT_EQ(text, golden.str()) << path << " differs; if that is meant, run the test with UPDATE_GOLDEN=1";
}

}  // namespace ganymede
