// The decisions of each scheduler on literals.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <tuple>

#include "common/random.hpp"
#include "policies/schedulers/fair_shares.hpp"
#include "policies/schedulers/placement.hpp"
#include "policies/schedulers/scheduler.hpp"

namespace ganymede::policies {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

/// A cluster of literals. The whole of a job takes its seconds[pool] on the GPUs that it asks for, and scales ideally.
struct View {
  double now_s = 0;
  std::vector<PoolState> pools = {{"p", 1, 8}};
  std::vector<OwnerState> owners = {{"all"}};
  std::vector<JobView> jobs;
  std::vector<std::vector<double>> seconds;
  PolicyMemory memory;
  /// Seconds of a whole job by its number, the pool and the GPUs, where jobs do not scale ideally.
  std::function<double(std::size_t, std::size_t, int)> takes_s;

  JobView& add(int gpus, std::vector<double> takes) {
    JobView job;
    job.job = jobs.size();
    job.gpus = job.least = job.most = gpus;
    jobs.push_back(job);
    seconds.push_back(std::move(takes));
    return jobs.back();
  }
  JobView& add_running(int gpus, std::vector<double> takes, int pool = 0) {
    JobView& job = add(gpus, std::move(takes));
    job.pool = pool;
    job.held = gpus;
    return job;
  }

  JobSchedule decide(const char* name, const std::map<std::string, double>& set = {}) {
    const Scheduler& scheduler = *find_scheduler(name);
    std::vector<double> settings;
    for (const PolicySetting& setting : scheduler.settings) {
      const auto given = set.find(std::string(setting.name));
      settings.push_back(given == set.end() ? setting.default_value : given->second);
    }
    WaitingJobs waiting(scheduler.kinds, owners);
    ClusterView view{now_s, pools, owners, {}, &waiting, [this](const JobView& job, std::size_t pool, int gpus) {
                       if (takes_s) return takes_s(job.job, pool, gpus);
                       return gpus > pools[pool].total() ? kNeverAgain : seconds[job.job][pool] * job.gpus / gpus;
                     }};
    std::vector<const JobView*> running;
    for (const JobView& job : jobs)
      if (job.pool >= 0)
        running.push_back(&job);
      else
        waiting.add(job, scheduler.rank ? scheduler.rank(view, settings, job) : 0);
    view.running = running;
    return scheduler.decide({view, settings, memory});
  }
  /// The jobs that run.
  std::vector<std::size_t> run(const char* name, const std::map<std::string, double>& set = {}) {
    std::vector<std::size_t> out;
    for (const Grant& grant : decide(name, set).run) out.push_back(grant.job);
    return out;
  }
};

TEST(FifoBackfill, FillsAGapWithoutDelayingTheFirst) {
  View view;
  view.add_running(6, {100});
  view.add(4, {50});  // can start at 100
  view.add(2, {100});
  view.add(1, {10});
  EXPECT_THAT(view.run("fifo-backfill"), UnorderedElementsAre(0, 2));
  EXPECT_THAT(view.run("fifo-backfill", {{"depth", 0}}), ElementsAre(0)) << "strictly in order";
  view.seconds[2] = {101};
  EXPECT_THAT(view.run("fifo-backfill"), UnorderedElementsAre(0, 2)) << "at 100 four GPUs are to spare";
  view.jobs[3].priority = 1;
  EXPECT_THAT(view.run("fifo-backfill"), UnorderedElementsAre(0, 3));
}

TEST(ShortestRemaining, PreemptsForAShorterJob) {
  View view;
  view.add_running(8, {100}).left = 0.5;
  view.add(8, {60});
  EXPECT_THAT(view.run("shortest-remaining"), ElementsAre(0));
  view.seconds[1] = {40};
  EXPECT_THAT(view.run("shortest-remaining"), ElementsAre(1));
}

TEST(Tiresias, PrefersJobsThatHaveHadLittle) {
  View view;
  view.add_running(8, {1e6}).attained_gpu_s = 11'000;
  view.add(8, {1e6});
  EXPECT_THAT(view.run("tiresias"), ElementsAre(0)) << "both are in the first queue: by arrival";
  view.jobs[0].attained_gpu_s = 13'000;
  EXPECT_THAT(view.run("tiresias"), ElementsAre(1));
  view.jobs[1].attained_gpu_s = 20'000;
  EXPECT_THAT(view.run("tiresias"), ElementsAre(0)) << "both are in the second queue: by arrival";
}

TEST(Kueue, LendsQuotaAndTakesItBack) {
  View view;
  view.owners = {{"x", 4}, {"y", 4}};
  view.add(4, {10});
  view.add(4, {10});
  EXPECT_THAT(view.run("kueue"), ElementsAre(0, 1)) << "y asks for nothing: x borrows";
  view.jobs[0].pool = view.jobs[1].pool = 0;
  view.jobs[0].held = view.jobs[1].held = 4;
  view.jobs[1].since_s = 5;
  view.add(4, {10}).owner = 1;
  EXPECT_THAT(view.run("kueue"), UnorderedElementsAre(0, 2)) << "the later job of the borrower leaves";
  view.owners[1].quota_gpus = 2;
  EXPECT_THAT(view.run("kueue"), UnorderedElementsAre(0, 1)) << "beyond its own quota y cannot take back";
}

// The later borrower's GPU is taken first and is not needed once those of the other one are there.
TEST(Kueue, StopsNoBorrowerInVain) {
  View view;
  view.owners = {{"x", 1}, {"y", 7}};
  for (const int gpus : {4, 1, 3}) view.add_running(gpus, {10});
  view.jobs[1].since_s = 5;
  view.jobs[2].owner = 1;
  view.add(4, {10}).owner = 1;
  EXPECT_THAT(view.run("kueue"), UnorderedElementsAre(1, 2, 3));
}

TEST(SlurmMultifactor, WeighsFairShareAgeAndPriority) {
  View view;
  view.owners = {{"much", -1, 9000}, {"little", -1, 1000}};
  view.add(8, {10});
  view.add(8, {10}).owner = 1;
  EXPECT_THAT(view.run("slurm-multifactor"), ElementsAre(1));
  view.memory.clear();
  EXPECT_THAT(view.run("slurm-multifactor", {{"fair_share", 0}}), ElementsAre(0)) << "else by age";
  view.memory.clear();
  view.jobs[1].priority = 100;
  EXPECT_THAT(view.run("slurm-multifactor", {{"fair_share", 0}}), ElementsAre(1));
}

TEST(Gavel, GivesEachJobTheGpusThatSuitItBest) {
  View view;
  view.pools = {{"fast", 1, 4}, {"slow", 1, 4}};
  view.add(4, {100, 110});   // hardly faster on the fast GPUs
  view.add(4, {100, 1000});  // ten times as fast there
  const JobSchedule schedule = view.decide("gavel");
  ASSERT_EQ(schedule.run.size(), 2U);
  for (const Grant& grant : schedule.run) EXPECT_EQ(grant.pool, grant.job == 1 ? 0U : 1U) << grant.job;
  EXPECT_EQ(schedule.again_s, 360);
}

TEST(Gavel, SharesTimeAmongEqualJobs) {
  View view;
  view.add(8, {1e6});
  view.add(8, {1e6});
  std::map<std::size_t, int> rounds;
  for (int round = 0; round < 20; ++round) {
    const JobSchedule schedule = view.decide("gavel");
    ASSERT_EQ(schedule.run.size(), 1U);
    for (JobView& job : view.jobs) {
      job.pool = job.job == schedule.run[0].job ? 0 : -1;
      job.held = job.pool == 0 ? 8 : 0;
    }
    ++rounds[schedule.run[0].job];
    view.now_s = schedule.again_s;
  }
  EXPECT_EQ(rounds[0], 10);
  EXPECT_EQ(rounds[1], 10);
}

TEST(Pollux, GrowsJobsIntoFreeGpusAndShrinksThemForNewOnes) {
  View view;
  JobView& first = view.add(2, {100});
  first.least = 1;
  first.most = 8;
  EXPECT_EQ(view.decide("pollux").run[0].gpus, 8);
  view.jobs[0].pool = 0;
  view.jobs[0].held = 8;
  JobView& second = view.add(2, {100});
  second.least = 1;
  second.most = 8;
  const JobSchedule both = view.decide("pollux");
  ASSERT_EQ(both.run.size(), 2U);
  EXPECT_EQ(both.run[0].gpus + both.run[1].gpus, 8);
  EXPECT_EQ(both.run[0].gpus, 4);
}

// Half of the time for each of two jobs on one pool; both have had as much after two rounds. The third job arrives
// within a round and waits for its end, and its share is not computed until 1,920 s have passed: until then it gets
// what the others leave.
TEST(GavelRounds, DecidesBetweenRoundsAlone) {
  View view;
  view.add(8, {2000});
  view.add(8, {2000});
  std::vector<std::size_t> ran;
  const auto decide_at = [&](double now_s) {
    view.now_s = now_s;
    const JobSchedule schedule = view.decide("gavel-rounds");
    for (JobView& job : view.jobs) job.pool = -1, job.held = 0;
    for (const Grant& grant : schedule.run) view.jobs[grant.job].pool = 0, view.jobs[grant.job].held = grant.gpus;
    EXPECT_EQ(schedule.run.size(), 1U);
    ran.push_back(schedule.run.front().job);
    return schedule.again_s;
  };
  EXPECT_EQ(decide_at(10), 370);
  EXPECT_EQ(decide_at(370), 730);
  view.add(8, {100});
  EXPECT_EQ(decide_at(400), 730) << "the third arrives";
  for (const double now_s : {730.0, 1090.0, 1450.0, 1810.0}) decide_at(now_s);
  EXPECT_THAT(ran, ElementsAre(0, 1, 1, 0, 1, 0, 1));
  ran.clear();
  for (const double now_s : {2170.0, 2530.0, 2890.0}) decide_at(now_s);
  EXPECT_THAT(ran, UnorderedElementsAre(0, 1, 2)) << "from 2,170 s on shares are those of three";
}

TEST(GavelRounds, StartsANewRoundWhenNothingOfTheLastOneRuns) {
  View view;
  view.add(8, {100});
  view.decide("gavel-rounds");
  view.jobs.clear();
  view.seconds.clear();
  JobView& later = view.add(8, {100});
  later.job = 1;
  view.seconds.push_back({100});
  view.now_s = 100;
  const JobSchedule schedule = view.decide("gavel-rounds");
  ASSERT_EQ(schedule.run.size(), 1U);
  EXPECT_EQ(schedule.run[0].job, 1U);
  EXPECT_EQ(schedule.again_s, 460);
}

// Two pools of two GPUs. The first job is worth 4 in the first and 1 in the second, the two others 2 and 1.
TEST(FairShares, AreAsLargeAsTheyCanBeForTheLeast) {
  const auto shares = fair_shares({{1, 1, 1}, {{4, 1}, {2, 1}, {2, 1}}, {1, 2}});
  // With shares a, b, b of the first pool and the rest of the time in the second: 4 a + 1 - a = 2 b + 1 - b = level,
  // and a + 2 b = 1. So 3 a = b, a = 1 / 7, b = 3 / 7 and the level is 10 / 7.
  const double first[] = {1.0 / 7, 3.0 / 7, 3.0 / 7};
  for (std::size_t j = 0; j < 3; ++j) {
    EXPECT_NEAR(shares[j][0], first[j], 1e-4);
    EXPECT_NEAR(shares[j][1], 1 - first[j], 1e-4);
  }
}

TEST(FairShares, SpreadWhatIsLeftEvenly) {
  // One job on two like pools: all of its time, half in each. A job that is worth nothing anywhere gets nothing.
  const auto shares = fair_shares({{1, 2}, {{1, 1}, {0, 0}}, {4, 4}});
  EXPECT_NEAR(shares[0][0], 0.5, 1e-4);
  EXPECT_NEAR(shares[0][1], 0.5, 1e-4);
  EXPECT_THAT(shares[1], ElementsAre(0, 0));
}

// Three nodes of eight GPUs: 8 and 16 GPUs are slower than 6, as where a second node is first reached over a slow
// network, and 24 are twice as fast.
TEST(Pollux, LooksBeyondASizeThatIsSlower) {
  View view;
  view.pools = {{"p", 3, 8}};
  view.add(6, {100}).most = 24;
  view.takes_s = [](std::size_t, std::size_t, int gpus) { return gpus == 24 ? 50.0 : gpus == 6 ? 100.0 : 120.0; };
  EXPECT_EQ(view.decide("pollux").run[0].gpus, 24);
}

TEST(Pollux, StartsAJobInThePoolWhereItEndsUpFastest) {
  View view;
  view.pools = {{"fast", 1, 2}, {"large", 1, 8}};
  JobView& job = view.add(1, {100, 150});
  job.most = 8;
  const JobSchedule schedule = view.decide("pollux");
  EXPECT_EQ(schedule.run[0].pool, 1U) << "150 / 8 s are less than 100 / 2";
  EXPECT_EQ(schedule.run[0].gpus, 8);
}

// Whatever the times of the sizes, no job that is free to change would be faster with the GPUs that are left, at any of
// the sizes that are tried: twice as many within a node, then whole nodes, or as many as there may be.
TEST(Pollux, LeavesNothingIdleThatWouldHelp) {
  RandomStream random(1, "pollux");
  for (int round = 0; round < 300; ++round) {
    View view;
    view.pools = {{"a", 3, 8}, {"b", 2, 4}};
    const int jobs = 1 + static_cast<int>(random.uniform() * 4);
    for (int j = 0; j < jobs; ++j) {
      JobView& job = view.add(1 + static_cast<int>(random.uniform() * 6), {});
      job.most = job.least + static_cast<int>(random.uniform() * 24);
    }
    std::map<std::tuple<std::size_t, std::size_t, int>, double> times;
    view.takes_s = [&](std::size_t job, std::size_t pool, int gpus) {
      if (gpus > view.pools[pool].total()) return kNeverAgain;
      return times.try_emplace({job, pool, gpus}, 10 + 100 * random.uniform()).first->second;
    };
    const JobSchedule schedule = view.decide("pollux", {{"gain", 1}});
    std::vector<int> free = {24, 8};
    for (const Grant& grant : schedule.run) free[grant.pool] -= grant.gpus;
    for (const Grant& grant : schedule.run) {
      const int per_node = view.pools[grant.pool].gpus_per_node;
      const int most = std::min(view.jobs[grant.job].most, grant.gpus + free[grant.pool]);
      for (int size = grant.gpus; size < most;) {
        size = std::min(most, size < per_node ? std::min(2 * size, per_node) : (size / per_node + 1) * per_node);
        EXPECT_GE(view.takes_s(grant.job, grant.pool, size), view.takes_s(grant.job, grant.pool, grant.gpus));
      }
    }
  }
}

TEST(Schedulers, StandInTheDocumentationWithTheirSettings) {
  std::ifstream file(GANYMEDE_SOURCE_DIR "/docs/cluster.md");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  for (const Scheduler& scheduler : schedulers()) {
    const std::size_t row = text.find(fmt::format("\n| `{}` |", scheduler.name));
    ASSERT_NE(row, std::string::npos) << scheduler.name;
    const std::string line = text.substr(row + 1, text.find('\n', row + 1) - row);
    for (const PolicySetting& setting : scheduler.settings)
      EXPECT_THAT(line, testing::HasSubstr(fmt::format("`{}`", setting.name))) << scheduler.name;
  }
  for (const PlacementRule& placement : placements())
    EXPECT_THAT(text, testing::HasSubstr(fmt::format("\n| `{}` |", placement.name)));
}

// Kinds stand in for a sort of all jobs: any mixture of sizes, ranks and passed-over kinds comes in one order.
TEST(WaitingJobs, AreWalkedByRankAndNumberPastThoseThatCannotStart) {
  for (const Kinds kinds : {Kinds::size, Kinds::owner, Kinds::owner_and_priority}) {
    std::vector<JobView> jobs(200);
    WaitingJobs waiting(kinds);
    std::vector<std::pair<double, std::size_t>> places;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      jobs[i].job = i;
      jobs[i].gpus = 1 + static_cast<int>(i * 7 % 5);
      jobs[i].owner = i % 3;
      jobs[i].priority = static_cast<std::int64_t>(i * 11 % 4);
      waiting.add(jobs[i], static_cast<double>(i * 13 % 10));
    }
    for (std::size_t i = 0; i < jobs.size(); i += 4) waiting.remove(jobs[i]);
    for (const JobView& job : jobs)
      if (job.job % 4 != 0) places.emplace_back(static_cast<double>(job.job * 13 % 10), job.job);
    std::sort(places.begin(), places.end());
    EXPECT_EQ(waiting.size(), places.size());
    EXPECT_EQ(waiting.highest_priority(), 3);
    // Jobs of five GPUs cannot start among the first 30, then they can, and those of one cannot.
    std::vector<std::size_t> walked, expected;
    WaitingWalk walk(waiting);
    const auto may_start = [&](int size) { return walked.size() < 30 ? size != 5 : size != 1; };
    while (const JobView* job = walk.next([&](const JobKind& kind) { return may_start(kind.gpus); })) {
      walked.push_back(job->job);
      if (walked.size() == 30) walk.reconsider();
    }
    for (const auto& [rank, job] : places)
      if (expected.size() < 30 ? jobs[job].gpus != 5 : jobs[job].gpus != 1) expected.push_back(job);
    EXPECT_EQ(walked, expected);
  }
}

TEST(WaitingJobs, ThatAreTooLargeAreNotLookedAtOneByOne) {
  std::vector<OwnerState> owners(1000, {"", 1});
  owners[700].quota_gpus = 2;
  WaitingJobs waiting(Kinds::owner, owners);
  std::vector<JobView> jobs(owners.size());
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    jobs[i].job = jobs[i].owner = i;
    jobs[i].gpus = i == 900 ? 1 : 2;
    waiting.add(jobs[i], 0);
  }
  const auto walked = [](WaitingWalk walk, int most_gpus) {
    std::pair<int, std::vector<std::size_t>> out;  // kinds that were asked about, and jobs
    while (const JobView* job = walk.next([&](const JobKind&) { return ++out.first; }, most_gpus))
      out.second.push_back(job->job);
    return out;
  };
  EXPECT_THAT(walked(WaitingWalk(waiting), 1), testing::Pair(1, ElementsAre(900)));
  EXPECT_THAT(walked(WaitingWalk::within_quotas(waiting), 2), testing::Pair(2, ElementsAre(700, 900)));
}

TEST(Schedulers, GrantNothingThatIsNotThere) {
  for (const Scheduler& scheduler : schedulers()) {
    EXPECT_FALSE(scheduler.source.empty()) << scheduler.name;
    if (scheduler.decide == nullptr) continue;
    const std::string name(scheduler.name);
    View view;
    EXPECT_THAT(view.run(name.c_str()), IsEmpty());
    for (const int gpus : {3, 5, 8, 1, 2, 7}) view.add(gpus, {100});
    int granted = 0;
    for (const Grant& grant : view.decide(name.c_str()).run) granted += grant.gpus;
    EXPECT_LE(granted, 8) << name;
    EXPECT_GT(granted, 0) << name;
  }
}

}  // namespace
}  // namespace ganymede::policies
