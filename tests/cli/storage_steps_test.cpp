// Many short steps over what keeps files: a small piece of work of each kind is started up to four times, each time
// with a trouble that the seed draws, and then once without one. After each start nothing of the user's is gone and
// what is there is whole; at last the outputs are those of undisturbed work.
//
//   GANYMEDE_STORAGE_STEPS=100000 GANYMEDE_STORAGE_SEED=7 cli_test --gtest_filter='StorageSteps.*'

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "common/errors.hpp"
#include "common/file.hpp"
#include "common/random.hpp"
#include "common/row_file.hpp"
#include "kernel/checkpoint.hpp"
#include "serve/job_store.hpp"
#include "storage_troubles.hpp"
#include "studies/shard_folder.hpp"
#include "support/when.hpp"

namespace ganymede::cli {
namespace {

using storage::Fate;
using Acknowledge = std::function<void(int id)>;

std::uint64_t steps() {
  const char* given = std::getenv("GANYMEDE_STORAGE_STEPS");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : is_sanitized() ? 40 : 400;
}

/// A training of six steps, whose weights are sixteen numbers.
void train(const fs::path& folder, const Acknowledge& /*acknowledge*/) {
  kernel::check_checkpoint_directory(folder / "c");
  check_writable(folder / "w.safetensors");
  const kernel::CheckpointLock lock(folder / "c");
  std::vector<std::string> remarks;
  const auto last = kernel::last_checkpoint(folder / "c", remarks);
  if (!remarks.empty()) throw std::logic_error("a damaged checkpoint: " + remarks.front());
  kernel::SafeTensors state{{{"w", {{16}, std::vector<float>(16, 0.5F)}}}, {}};
  if (last) state = last->content;
  for (std::int64_t step = last ? last->metadata().number("step", 1) : 0; step++ < 6;) {
    for (float& value : state.tensors["w"].values)
      value = 3.7F * value * (1 - value) + 1e-3F * static_cast<float>(step);
    state.metadata = {{"step", std::to_string(step)}};
    kernel::save_checkpoint(folder / "c", step, state);
  }
  write_file(folder / "w.safetensors", kernel::write_safetensors(state));
}

/// Two shards of six runs, and their merge.
void merge(const fs::path& folder, const Acknowledge& /*acknowledge*/) {
  const studies::ShardedWork work{"sweep",   "1",           "steps", {{"a", "content of a"}, {"b", "content of b"}},
                                  {1, 2, 3}, Json::object()};
  studies::ShardRuns runs;
  runs.work = [](std::size_t run) { return fmt::format(R"({{"run":{}}})", run * run); };
  for (const std::uint64_t shard : {0U, 1U}) {
    const auto outcome = studies::run_shard(work, {shard, 2}, folder / "shards", runs, {});
    if (!outcome.complete() || outcome.failed > 0) throw Failure("runs are missing: " + outcome.first_reason);
  }
  studies::ShardFolder kept(folder / "shards");
  kept.scan({}, {});
  write_file(folder / "out.json", [&](const ContentSink& sink) {
    for (std::size_t run = 0; run < work.size(); ++run)
      kept.read(run, [&](const std::string& text) { sink(text + "\n"); });
  });
}

/// A server that takes three jobs and does them.
void serve(const fs::path& folder, const Acknowledge& acknowledge) {
  serve::JobStore store(folder / "data");
  std::vector<std::string> remarks;
  std::set<int> known;
  for (const serve::JobRecord& job : store.load(remarks)) known.insert(job.id);
  while (known.size() < 3) {
    serve::JobRecord job;
    job.id = store.make();
    write_file(store.folder(job.id) / "input.json", "{}");
    store.save(job);
    acknowledge(job.id);
    known.insert(job.id);
    job.state = serve::JobState::done;
    store.save(job);
  }
  write_file(folder / "out.json", "three jobs");
}

/// A sweep's journal of twelve rows.
void keep_rows(const fs::path& folder, const Acknowledge& /*acknowledge*/) {
  const fs::path file = folder / "out.json.runs";
  RowWriter writer(file);
  std::set<int> known;
  RowReader reader(file);
  while (reader.next()) known.insert(std::stoi(std::string(reader.text())));
  writer.cut(reader.end());
  std::string all;
  for (int row = 0; row < 12; ++row) {
    if (!known.contains(row)) writer.append(std::to_string(row));
    all += std::to_string(row) + "\n";
  }
  writer.sync();
  write_file(folder / "out.json", all);
}

struct Kind {
  const char* name;
  void (*work)(const fs::path&, const Acknowledge&);
  std::vector<std::string> outputs;
};
const Kind kKinds[] = {{"train", train, {"w.safetensors"}},
                       {"serve", serve, {"out.json"}},
                       {"rows", keep_rows, {"out.json"}},
                       {"merge", merge, {"out.json"}}};  // it starts processes, which take longest

/// The end of the machine, in place of the program's.
struct Crash {};

void lose_power(ForgetfulDisk& disk, std::uint64_t drawn) {
  RandomStream random(drawn, "power");
  disk.lose_power(random);
}

class StorageSteps : public testing::Test {
 protected:
  void begin() {
    fs::remove_all(folder());
    fs::remove_all(scratch_ / "kept");
    for (const char* name : kForeign) {
      fs::create_directories((folder() / name).parent_path());
      std::ofstream(folder() / name) << "mine: " << name;
    }
    acknowledged_.clear();
  }
  /// What becomes of a call of the work that suffers.
  Fate suffered(const storage::Change& change, int at, Trouble trouble, std::uint64_t drawn, ForgetfulDisk& disk) {
    const bool here = calls_++ == at && !dead_;
    if (!here && !dead_ && trouble == Trouble::power_lost) disk.see(change);
    if (!here && !dead_) return Fate::done;
    if (here && trouble == Trouble::torn) {
      dead_ = true;  // from the next call on
      return Fate::half;
    }
    if (here && trouble == Trouble::power_lost) lose_power(disk, drawn);
    if (here && trouble != Trouble::crashed && trouble != Trouble::power_lost)
      return fate_of(change, trouble, disk, folder(), drawn);
    dead_ = true;
    if (change.call == storage::Call::remove) return Fate::failed;  // of a destructor, which must not throw
    throw Crash();
  }
  /// Does the work in this process; returns 0, 1, or 137 if the trouble ended it.
  int run(const Kind& kind, int at, Trouble trouble, std::uint64_t drawn) {
    ForgetfulDisk disk(scratch_ / "kept");
    calls_ = 0, dead_ = false, said_.clear();
    storage::set_fates([&](const storage::Change& change) { return suffered(change, at, trouble, drawn, disk); });
    int code = 0;
    try {
      kind.work(folder(), [&](int id) { acknowledged_.insert(id); });
    } catch (const Crash&) {
    } catch (const std::logic_error& wrong) {
      ADD_FAILURE() << wrong.what();
    } catch (const std::exception& error) {
      said_ = error.what();
      code = 1;
    }
    storage::set_fates({});
    return dead_ ? 128 + SIGKILL : code;
  }

  std::map<std::string, std::string> outputs(const Kind& kind) const {
    std::map<std::string, std::string> contents;
    for (const std::string& name : kind.outputs) contents[name] = content_of(folder() / name);
    return contents;
  }
  /// After a start that ended with this code.
  void expect_nothing_lost(const Kind& kind, int code, const std::string& where) {
    for (const auto& [name, content] : outputs(kind)) {
      EXPECT_TRUE(content.empty() || content == right_[kind.name][name]) << where << ": " << name << " is not whole";
      EXPECT_TRUE(code != 0 || !content.empty()) << where << ": " << name << " is missing";
    }
    for (const char* name : kForeign)
      EXPECT_EQ(content_of(folder() / name), std::string("mine: ") + name) << where << ": the user's " << name;
    for (const int id : acknowledged_)
      EXPECT_FALSE(content_of(folder() / "data/jobs" / std::to_string(id) / "job.json").empty())
          << where << ": the server forgot job " << id;
  }

  /// Temporary files that are there.
  std::set<fs::path> unfinished() const {
    std::set<fs::path> files;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder()))
      if (entry.path().filename().string().find(".tmp-") != std::string::npos) files.insert(entry.path());
    return files;
  }

  /// One start with a trouble, or two at the same moment. Returns the number of starts.
  int suffer(const Kind& kind, RandomStream& random, const std::string& step) {
    const auto trouble = static_cast<Trouble>(random.below(static_cast<std::uint64_t>(Trouble::none) + 1));
    const int at = static_cast<int>(random.below(static_cast<std::uint64_t>(most_calls_[kind.name])));
    const bool two = trouble != Trouble::power_lost && random.below(64) == 0;
    const std::string where = fmt::format("{}, trouble {} at call {}{}", step, static_cast<int>(trouble), at,
                                          two ? ", with another writer" : "");
    const std::set<fs::path> before = unfinished();
    const std::uint64_t drawn = random.below(1U << 30U);
    const pid_t other = two ? ::fork() : -1;
    if (other == 0) ::_exit(run(kind, -1, Trouble::none, 0));
    const int code = run(kind, at, trouble, drawn);
    EXPECT_TRUE(!two || code_of(other) <= 1) << where;
    expect_nothing_lost(kind, code, where);
    const bool ends = trouble == Trouble::crashed || trouble == Trouble::torn || trouble == Trouble::power_lost;
    EXPECT_TRUE(code <= 1 || ends) << where << ": ends with " << code;
    for (const fs::path& file : unfinished())
      EXPECT_TRUE(code > 128 || before.contains(file)) << where << ": leaves " << file;
    if (random.below(3) == 0) step_clock(folder(), random.uniform() < 0.5);
    return two ? 2 : 1;
  }

  fs::path folder() const { return scratch_ / "work"; }

  const Scratch scratch_;
  std::map<std::string, std::map<std::string, std::string>> right_;
  std::map<std::string, int> most_calls_;
  std::set<int> acknowledged_;  ///< jobs of which the server has said that it has them
  int calls_ = 0;
  bool dead_ = false;  ///< the program has ended, though destructors are left
  std::string said_;
};

TEST_F(StorageSteps, NothingIsLost) {
  for (const Kind& kind : kKinds) {
    begin();
    ASSERT_EQ(run(kind, -1, Trouble::none, 0), 0) << kind.name << ": " << said_;
    most_calls_[kind.name] = calls_;
    ASSERT_GT(calls_, 10) << kind.name;
    right_[kind.name] = outputs(kind);
  }
  std::uint64_t starts = 0;
  std::map<std::string, std::uint64_t> done;
  for (std::uint64_t number = 0; number < steps() && !HasFailure(); ++number) {
    RandomStream random(storage_seed() * 1'000'000'007 + number, "storage steps");
    const Kind& kind = kKinds[random.below(32) == 0 ? 3 : random.below(3)];
    const std::string step = fmt::format("step {} of the seed {}: {}", number, storage_seed(), kind.name);
    begin();
    for (std::uint64_t left = 1 + random.below(4); left > 0 && !HasFailure(); --left)
      starts += static_cast<std::uint64_t>(suffer(kind, random, step));
    const int code = run(kind, -1, Trouble::none, 0);
    EXPECT_EQ(code, 0) << step << ": " << said_;
    expect_nothing_lost(kind, code, step);
    ++starts, ++done[kind.name];
  }
  for (const auto& [kind, count] : done) fmt::print("{}: {} steps\n", kind, count);
  fmt::print("{} starts\n", starts);
}

// A server that starts would wait for ever for somebody to write into the pipe.
TEST_F(StorageSteps, ARecordOfAJobThatIsNoFileIsLeftOut) {
  fs::create_directories(folder() / "data/jobs/7");
  ASSERT_EQ(::mkfifo((folder() / "data/jobs/7/job.json").c_str(), 0600), 0);
  std::vector<std::string> remarks;
  serve::JobStore store(folder() / "data");
  EXPECT_TRUE(store.load(remarks).empty());
  ASSERT_EQ(remarks.size(), 1U);
  EXPECT_NE(remarks[0].find("job 7 is left out: "), std::string::npos) << remarks[0];
  EXPECT_NE(remarks[0].find("is no regular file"), std::string::npos) << remarks[0];
  EXPECT_EQ(store.make(), 8);
}

}  // namespace
}  // namespace ganymede::cli
