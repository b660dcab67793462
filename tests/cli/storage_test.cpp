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
#include "common/json_value.hpp"
#include "common/random.hpp"
#include "run_program.hpp"
#include "support/when.hpp"

namespace ganymede::cli {
namespace {

namespace fs = std::filesystem;
using storage::Fate;
using Words = std::vector<std::string>;

/// Files that users may keep beside those of the program, under names that resemble its own.
constexpr std::array kForeign = {"out.json.tmp-mybackup", "out.json.tmp-0123", "c/step-best.ckpt",
                                 "c/step-000000000001-mine.ckpt", "shards/notes.rows.txt"};

/// The seed by which fates are drawn; GANYMEDE_STORAGE_SEED names another.
std::uint64_t seed() {
  const char* given = std::getenv("GANYMEDE_STORAGE_SEED");
  return given == nullptr ? 1 : std::strtoull(given, nullptr, 10);
}

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
  }
  ~Storage() override { ::munmap(calls_, sizeof *calls_); }

 protected:
  /// Starts the commands in a child; each ends where the one before did not succeed. The call with the index `at`, of
  /// all that the child makes, has the fate.
  pid_t start(const Work& work, int at, Fate fate) {
    *calls_ = 0;
    const pid_t child = ::fork();
    if (child != 0) return child;
    const int null = ::open("/dev/null", O_RDWR);
    for (const int stream : {0, 1, 2}) ::dup2(null, stream);
    ::setenv("GANYMEDE_NOW", "2026-11-20T12:00:00Z", 1);
    storage::set_fates([this, at, fate](storage::Call) { return (*calls_)++ == at ? fate : Fate::done; });
    int code = 0;
    for (const Words& words : work.commands)
      if (code == 0) code = run_command_line(words);
    ::_exit(code);
  }
  static int code_of(pid_t child) {
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  int run(const Work& work, int at = -1, Fate fate = Fate::done) { return code_of(start(work, at, fate)); }

  /// Empties the folder but for the inputs, and puts the user's own files there.
  void begin(const fs::path& folder) {
    for (const char* made : {"out.json", "c", "shards", "w.safetensors", "s.png"}) fs::remove_all(folder / made);
    for (const fs::directory_entry& entry : fs::directory_iterator(folder))
      if (entry.path().filename().string().find(".tmp-") != std::string::npos) fs::remove(entry);
    for (const char* name : kForeign) {
      fs::create_directories((folder / name).parent_path());
      std::ofstream(folder / name) << "mine: " << name;
    }
  }
  /// Steps the clock by ten years for all files that are there now.
  static void step_clock(const fs::path& folder, bool back) {
    constexpr auto kTenYears = std::chrono::hours(24 * 3650);
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder))
      if (entry.is_regular_file())
        fs::last_write_time(entry, fs::file_time_type::clock::now() + (back ? kTenYears : -kTenYears));
  }
  void expect_same(const fs::path& folder, const std::map<std::string, std::string>& whole, const std::string& where) {
    for (const auto& [name, content] : whole)
      EXPECT_TRUE(content_of(folder / name) == content) << where << ": " << name << " differs";
    for (const char* name : kForeign)
      EXPECT_EQ(content_of(folder / name), std::string("mine: ") + name) << where << ": the user's " << name;
  }

  /// Replays a fate at each call; in short runs at about twelve of them, which the seed draws, under the sanitizers at
  /// three: the release build's tests repeat them.
  void replay(const Work& work, const Scratch& scratch) {
    const fs::path folder = scratch / "";
    begin(folder);
    ASSERT_EQ(run(work), 0);
    const int calls = *calls_;
    ASSERT_GT(calls, 2);
    std::map<std::string, std::string> whole;
    for (const std::string& name : work.outputs) whole[name] = content_of(folder / name);
    RandomStream random(seed(), "storage");
    constexpr std::array kFates = {Fate::crashed, Fate::torn, Fate::failed, Fate::failed_for_ever};
    const bool all = std::getenv("GANYMEDE_LONG_TESTS") != nullptr && !is_sanitized();
    for (int at = 0; at < calls; ++at) {
      if (!all && random.uniform() * calls > (is_sanitized() ? 3 : 12)) continue;
      begin(folder);
      const Fate fate = kFates[static_cast<std::size_t>(random.uniform() * kFates.size())];
      const std::string where =
          fmt::format("call {} of {}, fate {}, seed {}", at, calls, static_cast<int>(fate), seed());
      const int code = run(work, at, fate);
      if (fate == Fate::crashed || fate == Fate::torn)
        EXPECT_EQ(code, 128 + SIGKILL) << where;
      else
        EXPECT_LE(code, 2) << where;
      step_clock(folder, random.uniform() < 0.5);
      EXPECT_EQ(run(work), 0) << where;
      expect_same(folder, whole, where);
      if (HasFailure()) return;
    }
    // Two at the same moment: one may be refused, but what is there then is whole, and a third gives the same.
    for (int round = 0; round < (is_sanitized() ? 1 : 3); ++round) {
      begin(folder);
      const pid_t first = start(work, -1, Fate::done), second = start(work, -1, Fate::done);
      for (const pid_t child : {first, second}) EXPECT_LE(code_of(child), 3);
      EXPECT_EQ(run(work), 0);
      expect_same(folder, whole, "two writers");
    }
  }

  std::atomic<int>* calls_;
};

TEST_F(Storage, ATrainingIsResumedToTheSameBytes) {
  const Scratch scratch;
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
            (scratch / "c").string(),
            "--checkpoint-every",
            "1",
            "--resume",
            "--weights",
            (scratch / "w.safetensors").string(),
            "--samples",
            (scratch / "s.png").string()}},
          {"w.safetensors", "s.png"}},
         scratch);
}

TEST_F(Storage, ShardsAreMergedToTheSameBytes) {
  const Scratch scratch;
  Json study = Json::parse(content_of(GANYMEDE_SOURCE_DIR "/studies/first-look.json"), /*comments=*/true);
  study["gpus"] = {1, 2};
  study["workload"]["trace"] = "recorded:mlp-gan-cpu";
  const std::string file = scratch.write("study.json", study.dump());
  const std::string shards = (scratch / "shards").string();
  replay({{{"sweep", file, "--shard", "0/2", "-o", shards, "--jobs", "1"},
           {"sweep", file, "--shard", "1/2", "-o", shards, "--jobs", "1"},
           {"merge", shards, "-o", (scratch / "out.json").string()}},
          {"out.json"}},
         scratch);
}

TEST_F(Storage, ASweepIsContinuedToTheSameBytes) {
  const Scratch scratch;
  Json study = Json::parse(content_of(GANYMEDE_SOURCE_DIR "/studies/first-look.json"), /*comments=*/true);
  study["gpus"] = {1, 2};
  study["workload"]["trace"] = "recorded:mlp-gan-cpu";
  replay({{{"sweep", scratch.write("study.json", study.dump()), "--format", "json", "--jobs", "1", "-o",
            (scratch / "out.json").string()}},
          {"out.json"}},
         scratch);
}

TEST_F(Storage, ACatalogIsUpdatedToTheSameBytes) {
  const Scratch scratch;
  const std::string list =
      scratch.write("vms.csv",
                    "InstanceType,AcceleratorName,AcceleratorCount,Region,AvailabilityZone,Price,SpotPrice\n"
                    "a2-highgpu-8g,A100,8.0,us-central1,us-central1-a,20,9\n");
  replay({{{"catalog", "--provider", "gcp", "--as-of", "2026-11-19", "--update", list, "-o",
            (scratch / "out.json").string()}},
          {"out.json"}},
         scratch);
}

}  // namespace
}  // namespace ganymede::cli
