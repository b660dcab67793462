// Timed algorithms in their file.

#include "kernel/ops/cuda/algorithm_choices.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/file.hpp"
#include "scratch.hpp"

namespace ganymede::kernel {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

const std::vector<TimedAlgorithm> kTimed{{1, 2, true, 3e-5}, {0, 1, false, 2e-5}};

void expect_same(const std::vector<TimedAlgorithm>& found, const std::vector<TimedAlgorithm>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].number, expected[i].number);
    EXPECT_EQ(found[i].math, expected[i].math);
    EXPECT_EQ(found[i].repeats, expected[i].repeats);
    EXPECT_NEAR(found[i].seconds, expected[i].seconds, 1e-12);
  }
}

TEST(FileChoices, AreThereForTheNextTraining) {
  const Scratch scratch;
  const auto file = scratch.path() / "new folder" / "convolutions.json";
  FileChoices first(file);
  EXPECT_THAT(first.find("a GPU, a convolution"), IsEmpty());
  first.keep("a GPU, a convolution", kTimed);
  first.keep("another", {kTimed.back()});
  FileChoices second(file);
  expect_same(second.find("a GPU, a convolution"), kTimed);
  expect_same(second.find("another"), {kTimed.back()});
  EXPECT_THAT(second.find("a third"), IsEmpty());
}

TEST(FileChoices, IgnoreWhatTheyCannotReadAndSaySo) {
  const Scratch scratch;
  const auto file = scratch.file("convolutions.json");
  const std::pair<const char*, const char*> bad[] = {
      {"{", "cannot be read"},
      {"{}", "cannot be read"},
      {R"({"format": "another", "choices": {}})", "found another format"},
      {R"({"format": "ganymede-convolutions/1", "choices": {"a": [{"algorithm": "x"}], "b": 3}})",
       "2 entries cannot be read"}};
  for (const auto& [content, reason] : bad) {
    write_file(file, content);
    testing::internal::CaptureStderr();
    FileChoices choices(file);
    EXPECT_THAT(choices.find("a"), IsEmpty());
    EXPECT_THAT(choices.find("a"), IsEmpty());
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_THAT(said, HasSubstr(file.string() + ": "));
    EXPECT_THAT(said, HasSubstr(reason));
    EXPECT_EQ(said.find(reason), said.rfind(reason)) << "it is said once";
    choices.keep("a", kTimed);
    FileChoices again(file);
    expect_same(again.find("a"), kTimed);
  }
}

TEST(FileChoices, GoOnWithoutAFileThatCannotBeWritten) {
  const Scratch scratch;
  scratch.write("file", "");
  FileChoices choices(scratch.path() / "file" / "convolutions.json");
  testing::internal::CaptureStderr();
  choices.keep("a", kTimed);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("cannot be written"));
  expect_same(choices.find("a"), kTimed);
}

}  // namespace
}  // namespace ganymede::kernel
