// Replays what a crash, a full disk and a loss of power do at each call by which files change (common/storage.hpp), and
// asserts that the same command afterwards gives the same outputs, and that nothing of the user's is gone.

#include "common/storage.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "cli/program.hpp"
#include "common/file.hpp"
#include "common/json_value.hpp"
#include "common/random.hpp"
#include "run_program.hpp"
#include "storage_troubles.hpp"
#include "support/when.hpp"

namespace ganymede::cli {
namespace {

using storage::Fate;
using Words = std::vector<std::string>;

/// Commands one after the other in a folder, and the files that they write.
struct Work {
  std::vector<Words> commands;
  std::vector<std::string> outputs;
};

class Storage : public testing::Test {
 public:
  Storage() {
    void* shared = ::mmap(nullptr, sizeof *calls_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    calls_ = new (shared) std::atomic<int>(0);
    fs::create_directories(folder());
  }
  ~Storage() override { ::munmap(calls_, sizeof *calls_); }

 protected:
  /// Starts the commands in a child; each ends where the one before did not succeed. The trouble comes at the call with
  /// the index `at`, of all that the child makes.
  pid_t start(const Work& work, int at, Trouble trouble) {
    *calls_ = 0;
    const pid_t child = ::fork();
    if (child != 0) return child;
    const int null = ::open("/dev/null", O_RDWR);
    for (const int stream : {0, 1, 2}) ::dup2(null, stream);
    ::setenv("GANYMEDE_NOW", "2026-11-20T12:00:00Z", 1);
    ForgetfulDisk disk(scratch_ / "kept");
    storage::set_fates([&](const storage::Change& change) {
      const bool here = (*calls_)++ == at;
      if (!here && trouble == Trouble::power_lost) disk.see(change);
      return here ? fate_of(change, trouble, disk, folder(), storage_seed() + static_cast<std::uint64_t>(at))
                  : Fate::done;
    });
    int code = 0;
    for (const Words& words : work.commands)
      if (code == 0) code = run_command_line(words);
    ::_exit(code);
  }
  int run(const Work& work, int at = -1, Trouble trouble = Trouble::none) { return code_of(start(work, at, trouble)); }
  fs::path folder() const { return scratch_ / "work"; }

  /// Empties the folder but for the inputs, and puts the user's own files there.
  void begin() {
    const fs::path folder = this->folder();
    fs::remove_all(scratch_ / "kept");
    for (const char* made : {"out.json", "c", "shards", "w.safetensors", "s.png"}) fs::remove_all(folder / made);
    for (const fs::directory_entry& entry : fs::directory_iterator(folder))
      if (entry.path().filename().string().find(".tmp-") != std::string::npos) fs::remove(entry);
    for (const char* name : kForeign) {
      fs::create_directories((folder / name).parent_path());
      std::ofstream(folder / name) << "mine: " << name;
    }
  }
  void expect_same(const std::map<std::string, std::string>& whole, const std::string& where) {
    for (const auto& [name, content] : whole)
      EXPECT_TRUE(content_of(folder() / name) == content) << where << ": " << name << " differs";
    for (const char* name : kForeign)
      EXPECT_EQ(content_of(folder() / name), std::string("mine: ") + name) << where << ": the user's " << name;
  }

  /// Replays a trouble at about sixteen of the calls, which the seed draws, under the sanitizers at three; with
  /// GANYMEDE_EVERY_CALL in the environment at each.
  void replay(const Work& work) {
    begin();
    ASSERT_EQ(run(work), 0);
    const int calls = *calls_;
    ASSERT_GT(calls, 2);
    std::map<std::string, std::string> whole;
    for (const std::string& name : work.outputs) whole[name] = content_of(folder() / name);
    RandomStream random(storage_seed(), "storage");
    const bool all = std::getenv("GANYMEDE_EVERY_CALL") != nullptr;
    for (int at = 0; at < calls; ++at) {
      if (!all && random.uniform() * calls > (is_sanitized() ? 3 : 16)) continue;
      begin();
      const auto trouble = static_cast<Trouble>(random.below(static_cast<std::uint64_t>(Trouble::none)));
      const std::string where =
          fmt::format("call {} of {}, trouble {}, seed {}", at, calls, static_cast<int>(trouble), storage_seed());
      const int code = run(work, at, trouble);
      if (trouble == Trouble::clock_moved)
        EXPECT_EQ(code, 0) << where;
      else if (trouble == Trouble::failed || trouble == Trouble::failed_for_ever)
        EXPECT_LE(code, 2) << where;
      else
        EXPECT_EQ(code, 128 + SIGKILL) << where;
      step_clock(folder(), random.uniform() < 0.5);
      EXPECT_EQ(run(work), 0) << where;
      expect_same(whole, where);
      if (HasFailure()) return;
    }
    // Two at the same moment: one may be refused, but what is there then is whole, and a third gives the same.
    for (int round = 0; round < (is_sanitized() ? 1 : 3); ++round) {
      begin();
      const pid_t first = start(work, -1, Trouble::none), second = start(work, -1, Trouble::none);
      for (const pid_t child : {first, second}) EXPECT_LE(code_of(child), 3);
      EXPECT_EQ(run(work), 0);
      expect_same(whole, "two writers");
    }
  }

  const Scratch scratch_;
  std::atomic<int>* calls_;
};

// The disk that the other tests lose power with forgets what is not synced, and write_file leaves nothing to forget.
TEST_F(Storage, WhatWasWrittenOutlivesALossOfPower) {
  int forgotten = 0;
  for (std::uint64_t drawn = 0; drawn < 20; ++drawn) {
    RandomStream random(drawn, "power");
    ForgetfulDisk disk(scratch_ / "kept");
    storage::set_fates([&](const storage::Change& change) {
      disk.see(change);
      return Fate::done;
    });
    write_file(folder() / "synced", std::to_string(drawn));
    const int file = storage::create((folder() / "not-synced").c_str(), O_WRONLY | O_TRUNC);
    ASSERT_EQ(storage::write(file, "all of it", 9), 9);
    ::close(file);
    storage::set_fates({});
    disk.lose_power(random);
    EXPECT_EQ(content_of(folder() / "synced"), std::to_string(drawn));
    if (!fs::exists(folder() / "not-synced") || content_of(folder() / "not-synced") != "all of it") ++forgotten;
    fs::remove_all(scratch_ / "kept");
  }
  EXPECT_GT(forgotten, 5);
}

TEST_F(Storage, ATrainingIsResumedToTheSameBytes) {
  replay({{{"train",
            "--model",
            "mlp-gan",
            "--steps",
            "4",
            "--batch",
            "4",
            "--threads",
            "1",
            "--backend",
            "cpu",
            "--checkpoint",
            (folder() / "c").string(),
            "--checkpoint-every",
            "1",
            "--resume",
            "--weights",
            (folder() / "w.safetensors").string(),
            "--samples",
            (folder() / "s.png").string()}},
          {"w.safetensors", "s.png"}});
}

TEST_F(Storage, ShardsAreMergedToTheSameBytes) {
  Json study = Json::parse(content_of(GANYMEDE_SOURCE_DIR "/studies/first-look.json"), /*comments=*/true);
  study["gpus"] = {1, 2};
  study["workload"]["trace"] = "recorded:mlp-gan-cpu";
  const std::string file = scratch_.write("work/study.json", study.dump());
  const std::string shards = (folder() / "shards").string();
  replay({{{"sweep", file, "--shard", "0/2", "-o", shards, "--jobs", "1"},
           {"sweep", file, "--shard", "1/2", "-o", shards, "--jobs", "1"},
           {"merge", shards, "-o", (folder() / "out.json").string()}},
          {"out.json"}});
}

TEST_F(Storage, ASweepIsContinuedToTheSameBytes) {
  Json study = Json::parse(content_of(GANYMEDE_SOURCE_DIR "/studies/first-look.json"), /*comments=*/true);
  study["gpus"] = {1, 2};
  study["workload"]["trace"] = "recorded:mlp-gan-cpu";
  replay({{{"sweep", scratch_.write("work/study.json", study.dump()), "--format", "json", "--jobs", "1", "-o",
            (folder() / "out.json").string()}},
          {"out.json"}});
}

TEST_F(Storage, ACatalogIsUpdatedToTheSameBytes) {
  const std::string list =
      scratch_.write("work/vms.csv",
                     "InstanceType,AcceleratorName,AcceleratorCount,Region,AvailabilityZone,Price,SpotPrice\n"
                     "a2-highgpu-8g,A100,8.0,us-central1,us-central1-a,20,9\n");
  replay({{{"catalog", "--provider", "gcp", "--as-of", "2026-11-19", "--update", list, "-o",
            (folder() / "out.json").string()}},
          {"out.json"}});
}

}  // namespace
}  // namespace ganymede::cli
