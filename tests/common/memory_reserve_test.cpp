#include <gtest/gtest.h>

#include <filesystem>
#include <new>

#include "common/budget.hpp"
#include "common/file.hpp"
#include "support/temporary_folder.hpp"

namespace ganymede {
namespace {

TEST(MemoryReserve, ServesOneFailureUntilItIsFilledAgain) {
  keep_memory_reserve();
  const std::new_handler handler = std::get_new_handler();
  ASSERT_NE(handler, nullptr);
  for (int filled = 0; filled < 2; ++filled) {
    EXPECT_NO_THROW(handler());
    EXPECT_THROW(handler(), std::bad_alloc);
    keep_memory_reserve();
  }
  std::set_new_handler(nullptr);
}

void write_without_memory(const std::filesystem::path& path) {
  keep_memory_reserve();
  write_file(path, [](const ContentSink& sink) {
    sink("half");
    []() noexcept {
      for (;;) std::get_new_handler()();  // uses the reserve up, and then throws
    }();
  });
}

TEST(MemoryReserve, WhereNothingMayBeThrownTheProgramEndsInOrder) {
  const TemporaryFolder folder;
  write_file(folder.path() / "out", "old");
  EXPECT_EXIT(write_without_memory(folder.path() / "out"), testing::ExitedWithCode(1), "ganymede: out of memory");
  EXPECT_EQ(read_file(folder.path() / "out"), "old");
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    EXPECT_EQ(entry.path().filename(), "out");  // no temporary file
}

}  // namespace
}  // namespace ganymede
