#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "common/file.hpp"
#include "serve/doorkeeper.hpp"

namespace ganymede::serve {
namespace {

TEST(RefusalLog, ShowsWhatSteersATerminalAsTextAndStaysBounded) {
  std::string folder = testing::TempDir() + "/ganymede-XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const std::filesystem::path file = std::filesystem::path(folder) / "refused.log";
  RefusalLog log(file);
  log.add(404, "GET", "/\x1b[2J\nforged 200 GET /");
  EXPECT_THAT(read_file(file), testing::EndsWith(" 404 GET /\\u001b[2J\\u000aforged 200 GET /\n"));
  const std::string path(10'000, 'x');
  for (int i = 0; i < 12'000; ++i) log.add(404, "GET", path);  // some 240 bytes each, 2.9 MB in all
  std::uintmax_t kept = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) kept += entry.file_size();
  EXPECT_LE(kept, 2 * RefusalLog::kMaxBytes + 1000);
  EXPECT_GT(kept, RefusalLog::kMaxBytes);
  std::filesystem::remove_all(folder);
}

TEST(RefusalLog, WhereNothingCanBeWrittenNothingHappens) { RefusalLog("/proc/none/refused.log").add(403, "GET", "/"); }

}  // namespace
}  // namespace ganymede::serve
