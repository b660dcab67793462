// The shard that --shard names, alone or with the environment of a scheduler.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "common/errors.hpp"
#include "studies/shards.hpp"
#include "support/errors.hpp"

namespace ganymede::studies {
namespace {

using testing::HasSubstr;

/// The shard of `--shard text` in an environment of these variables, as "3/64".
std::string shard_in(const std::string& text, const std::map<std::string, std::string>& environment) {
  const Shard shard = read_shard(text, [&](const char* name) {
    const auto found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
  });
  return fmt::format("{}/{}", shard.index, shard.count);
}

TEST(ShardOption, CountsFromZeroOrFromOne) {
  EXPECT_EQ(shard_in("3/64", {}), "3/64");
  EXPECT_EQ(shard_in("0/64", {}), "0/64");
  EXPECT_EQ(shard_in("64/64", {}), "0/64");
  for (const char* wrong : {"65/64", "-1/4", "1/0", "1", "a/4", "1/4/2", "", "auto/0", "auto/x", "1.5/4", "0/1000001"})
    EXPECT_THROW(shard_in(wrong, {}), ConfigError) << wrong;
  EXPECT_THAT(message_of<ConfigError>([] { shard_in("65/64", {}); }), HasSubstr("index 65 is beyond the count of 64"));
}

TEST(ShardOption, AutoReadsTheScheduler) {
  const std::map<std::string, std::string> array = {{"SLURM_ARRAY_TASK_ID", "30"},  {"SLURM_ARRAY_TASK_COUNT", "4"},
                                                    {"SLURM_ARRAY_TASK_MIN", "10"}, {"SLURM_ARRAY_TASK_STEP", "10"},
                                                    {"SLURM_JOB_ID", "7"},          {"SLURM_PROCID", "0"},
                                                    {"SLURM_NTASKS", "1"}};
  EXPECT_EQ(shard_in("auto", array), "2/4");
  EXPECT_EQ(shard_in("auto", {{"SLURM_ARRAY_TASK_ID", "2"}, {"SLURM_ARRAY_TASK_COUNT", "4"}}), "2/4");
  EXPECT_EQ(shard_in("auto", {{"SLURM_PROCID", "3"}, {"SLURM_NTASKS", "8"}}), "3/8");
  EXPECT_EQ(shard_in("auto", {{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}}), "1/2");
  EXPECT_EQ(shard_in("auto", {{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}}), "1/2");
  EXPECT_EQ(shard_in("auto", {{"JOB_COMPLETION_INDEX", "5"}, {"JOB_COMPLETIONS", "6"}}), "5/6");
  EXPECT_EQ(shard_in("auto/6", {{"JOB_COMPLETION_INDEX", "5"}}), "5/6");
  // A few indices of an array of 64, run again.
  EXPECT_EQ(shard_in("auto/64", {{"SLURM_ARRAY_TASK_ID", "17"}, {"SLURM_ARRAY_TASK_COUNT", "2"}}), "17/64");
  // Processes inside the jobs of an array: mpirun knows better than srun, which started its helpers.
  std::map<std::string, std::string> nested = array;
  nested.insert({{"SLURM_STEP_ID", "1"}, {"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "3"}});
  EXPECT_EQ(shard_in("auto", nested), "7/12");
  EXPECT_EQ(shard_in("auto", {{"SLURM_JOB_ID", "7"},
                              {"SLURM_STEP_ID", "0"},
                              {"SLURM_PROCID", "1"},
                              {"SLURM_NTASKS", "9"},
                              {"SLURM_STEP_NUM_TASKS", "2"}}),
            "1/2");
  // The script of a batch job is one process, whatever it asks for.
  EXPECT_EQ(shard_in("auto", {{"SLURM_JOB_ID", "7"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}}), "0/1");
}

TEST(ShardOption, AutoSaysWhatIsMissing) {
  const auto says = [](const std::string& text, const std::map<std::string, std::string>& environment,
                       const char* what) {
    EXPECT_THAT(message_of<ConfigError>([&] { shard_in(text, environment); }), HasSubstr(what));
  };
  says("auto", {}, "none of SLURM_ARRAY_TASK_ID");
  says("auto", {{"JOB_COMPLETION_INDEX", "5"}}, "JOB_COMPLETION_INDEX is set, but not JOB_COMPLETIONS");
  says("auto", {{"OMPI_COMM_WORLD_RANK", "5"}}, "not OMPI_COMM_WORLD_SIZE");
  says("auto", {{"SLURM_ARRAY_TASK_ID", "5"}}, "not SLURM_ARRAY_TASK_COUNT");
  says("auto", {{"SLURM_PROCID", "9"}, {"SLURM_NTASKS", "8"}}, "SLURM_PROCID: index 9 is beyond the count of 8");
  says("auto", {{"SLURM_ARRAY_TASK_ID", "17"}, {"SLURM_ARRAY_TASK_COUNT", "2"}, {"SLURM_ARRAY_TASK_MIN", "3"}},
       "an array with gaps needs the count");
  says("auto", {{"SLURM_PROCID", "x"}, {"SLURM_NTASKS", "8"}}, "SLURM_PROCID is \"x\"");
  says("auto/8", {{"PMI_RANK", "1"}, {"PMI_SIZE", "4"}}, "PMI_SIZE is 4");
}

}  // namespace
}  // namespace ganymede::studies
