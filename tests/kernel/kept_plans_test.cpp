// Plans of cuDNN in their folder.

#include "kernel/ops/cuda/kept_plans.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/file.hpp"
#include "scratch.hpp"

namespace ganymede::kernel {
namespace {

namespace fs = std::filesystem;

TEST(FolderPlans, AreThereForTheNextTraining) {
  const Scratch scratch;
  const fs::path folder = scratch.path() / "new folder" / "cudnn-plans";
  FolderPlans first(folder);
  EXPECT_EQ(first.find("a GPU, a convolution"), "");
  EXPECT_FALSE(fs::exists(folder));
  first.keep("a GPU, a convolution", "{one}");
  first.keep("another", "{two}");
  first.keep("another", "{three}");
  FolderPlans second(folder);
  EXPECT_EQ(second.find("a GPU, a convolution"), "{one}");
  EXPECT_EQ(second.find("another"), "{three}");
  EXPECT_EQ(second.find("a third"), "");
}

TEST(FolderPlans, CountAsNotThereWhenTheyWereChanged) {
  const Scratch scratch;
  FolderPlans plans(scratch.path() / "plans");
  plans.keep("a GPU", "{machine code}");
  const fs::path file = fs::directory_iterator(scratch.path() / "plans")->path();
  const std::string content = read_file(file);
  for (std::size_t i = 0; i < content.size(); ++i) {
    std::string changed = content;
    changed[i] ^= 1;
    write_file(file, changed);
    EXPECT_EQ(plans.find("a GPU"), "") << i;
    write_file(file, content.substr(0, i));
    EXPECT_EQ(plans.find("a GPU"), "") << i;
  }
  write_file(file, content);
  EXPECT_EQ(plans.find("a GPU"), "{machine code}");
}

TEST(FolderPlans, ThatCannotBeWrittenAreReportedOnce) {
  const Scratch scratch;
  const auto file = scratch.file("a file");
  write_file(file, "x");
  FolderPlans plans(file);
  testing::internal::CaptureStderr();
  plans.keep("a GPU", "{}");
  plans.keep("a GPU", "{}");
  EXPECT_EQ(plans.find("a GPU"), "");
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("compiled again"), std::string::npos);
  EXPECT_EQ(said.find("compiled again"), said.rfind("compiled again"));
}

}  // namespace
}  // namespace ganymede::kernel
