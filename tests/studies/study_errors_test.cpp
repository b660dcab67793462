// Mistakes in a study, and the place that the error message names.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/errors.hpp"
#include "study_files.hpp"
#include "support/errors.hpp"

namespace ganymede::studies {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;
class StudyErrors : public testing::Test {
 protected:
  std::string of(const Json& content) const {
    const std::string message = message_of<ConfigError>([&] { files_.load(content); });
    const std::string file = files_.file().string() + ": ";
    EXPECT_THAT(message, StartsWith(file));
    return message.starts_with(file) ? message.substr(file.size()) : message;
  }
  std::string with(const char* pointer, const Json& value) const { return of(StudyFiles::with(pointer, value)); }
  StudyFiles files_;
};

TEST_F(StudyErrors, MissingAndUnknownKeys) {
  for (const char* key : {"schema", "name", "workload", "platforms", "gpus", "schemes"}) {
    Json content = StudyFiles::basic();
    content.erase(key);
    EXPECT_EQ(of(content), fmt::format("/: the key \"{}\" is missing", key));
  }
  EXPECT_EQ(with("/seed", 1), "/seed: unknown key; did you mean \"seeds\"?");
  EXPECT_THAT(with("/platforms/0/nodes", 2), StartsWith("/platforms/0/nodes: unknown key"));
}

TEST_F(StudyErrors, EmptyLists) {
  EXPECT_THAT(with("/platforms", Json::array()), HasSubstr("/platforms: found an array of 0, expected at least one"));
  EXPECT_THAT(with("/gpus", Json::array()), HasSubstr("expected at least one count"));
  EXPECT_THAT(with("/schemes", Json::array()), HasSubstr("expected at least one scheme"));
  EXPECT_THAT(with("/seeds", Json::array()), HasSubstr("expected at least one seed"));
  EXPECT_THAT(with("/gpus", 2), StartsWith("/gpus: found 2, expected an array"));
}

TEST_F(StudyErrors, WrongValues) {
  EXPECT_THAT(with("/gpus/1", 0), StartsWith("/gpus/1: found 0, expected an integer from 1"));
  EXPECT_THAT(with("/schemes/1", "rign"),
              AllOf(StartsWith("/schemes/1: found \"rign\""), HasSubstr("did you mean \"ring\"?")));
  EXPECT_THAT(with("/seeds/0", -1), StartsWith("/seeds/0: found -1"));
  EXPECT_THAT(with("/overlap", 1), StartsWith("/overlap: found 1, expected true or false"));
}

TEST_F(StudyErrors, NamesThatThePlatformLacks) {
  EXPECT_THAT(with("/platforms/0/catalog", "asw"),
              AllOf(StartsWith("/platforms/0/catalog: "), HasSubstr("did you mean \"aws\"?")));
  EXPECT_THAT(with("/platforms/0/region", "room-11"),
              AllOf(StartsWith("/platforms/0/region: found \"room-11\""), HasSubstr("did you mean \"room-1\"?")));
  EXPECT_THAT(with("/platforms/0/gpu", "GPU-Z"),
              AllOf(StartsWith("/platforms/0/gpu: found \"GPU-Z\""), HasSubstr("did you mean \"GPU-")));
  EXPECT_THAT(with("/platforms/0/market", "sopt"),
              AllOf(StartsWith("/platforms/0/market: "), HasSubstr("did you mean \"spot\"?")));
  Json instance = StudyFiles::basic();
  instance["platforms"][0] = {{"catalog", "lab.json"}, {"region", "room-1"}, {"instance", "fuor"}};
  EXPECT_THAT(of(instance), AllOf(StartsWith("/platforms/0/instance: "), HasSubstr("did you mean \"four\"?")));
  instance["platforms"][0]["gpu"] = "X";
  EXPECT_THAT(of(instance), HasSubstr("stands beside"));
}

TEST_F(StudyErrors, InOneRunNameIt) {
  EXPECT_THAT(with("/workload/epochs", 0),
              AllOf(StartsWith("/workload/epochs: found 0"), HasSubstr("(run: lab room-1, 1 x X, seed 1)")));
  EXPECT_THAT(with("/workload/trace", "absent.json"), StartsWith("/workload/trace: "));
  Json uneven = StudyFiles::with("/gpus", {5});
  uneven["platforms"][0] = {{"catalog", "lab.json"}, {"region", "room-1"}, {"instance", "four"}};
  const std::string message = message_of<ConfigError>([&] { files_.load(uneven); });
  EXPECT_THAT(message, AllOf(HasSubstr("5 GPUs cannot be spread evenly over 2 nodes"),
                             HasSubstr("(run: lab room-1, 5 x GPU, ring, seed 1)")));
}

// A file of 69 kB with 36,000 combinations took 4 GB.
TEST_F(StudyErrors, MoreCombinationsThanFitInMemory) {
  const Json counts(std::vector<int>(200, 2)), schemes(std::vector<std::string>(60, "ring"));
  Json content = StudyFiles::with("/gpus", counts);
  content["schemes"] = schemes;
  EXPECT_THAT(of(content), AllOf(StartsWith("/: found "), HasSubstr(" combinations of platforms, GPU counts, schemes "
                                                                    "and policies, expected at most 10000")));
  content = StudyFiles::with("/gpus", Json(std::vector<int>(20, 2)));
  content["seeds"] = {{"first", 1}, {"count", 1'000'000}};
  EXPECT_THAT(of(content), HasSubstr("expected at most 10000000; split the study"));
}

TEST_F(StudyErrors, MoreThanThereIsIsInfeasible) {
  const auto message = message_of<Infeasible>([&] {
    Json content = StudyFiles::with("/gpus", {64});
    content["platforms"][0] = {{"catalog", "private"}, {"region", "on-premise"}, {"gpu", "V100"}};
    files_.load(content);
  });
  EXPECT_THAT(message, AllOf(HasSubstr("holds no 64 x \"V100\""), HasSubstr("64 x V100, ring, seed 1)")));
}

}  // namespace
}  // namespace ganymede::studies
