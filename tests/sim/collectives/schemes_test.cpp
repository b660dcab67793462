#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <tuple>

#include "cases.hpp"
#include "common/errors.hpp"
#include "verify.hpp"

namespace ganymede::sim {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(Schemes, BringEveryContributionWhereItBelongs) {
  std::set<std::pair<std::string_view, Collective>> seen;
  for (const Case& item :
       all_cases({Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather, Collective::broadcast})) {
    if (item.request.topology.ranks == 1 || item.request.bytes == 0) continue;  // no bytes to reduce
    const Completeness verdict = is_complete(item.schedule(), item.request.collective);
    EXPECT_TRUE(verdict) << item.name() << ": " << verdict.violation;
    seen.emplace(item.scheme->name, item.request.collective);
  }
  for (const AllReduceScheme& scheme : allreduce_schemes())
    EXPECT_TRUE(seen.count({scheme.name, Collective::all_reduce})) << scheme.name << " was never tried";
  for (const char* name : {"ring", "multi-ring", "halving-doubling", "torus"})
    for (const auto collective : {Collective::reduce_scatter, Collective::all_gather})
      EXPECT_TRUE(seen.count({name, collective})) << name << " " << to_string(collective);
  for (const char* name : {"tree", "reduce-to-one"}) EXPECT_TRUE(seen.count({name, Collective::broadcast})) << name;
}

TEST(Schemes, PadTheBufferByLessThanAChunkForEachPart) {
  for (const Case& item : all_cases()) {
    const Schedule schedule = item.schedule();
    EXPECT_EQ(schedule.ranks(), item.request.topology.ranks) << item.name();
    EXPECT_GE(schedule.bytes(), item.request.bytes) << item.name();
    EXPECT_LE(schedule.bytes(), item.request.bytes + 64 * 33 * 33) << item.name();
  }
}

TEST(Schemes, HaveNoRoundsWhereThereIsNothingToDo) {
  for (const Case& item : all_cases()) {
    const bool nothing = item.request.topology.ranks == 1 || item.request.bytes == 0;
    EXPECT_EQ(item.schedule().rounds() == 0, nothing) << item.name();
  }
}

// The engine folds rounds into one. It may do so because rounds of a stage have the same transfers in the same order,
// with other offsets.
TEST(Schemes, RepeatTheSameTransfersWithinAStage) {
  const auto shape = [](const Transfer& t) { return std::tuple(t.source, t.destination, t.length, t.reduce); };
  for (const Case& item : all_cases()) {
    const Schedule schedule = item.schedule();
    std::int64_t messages = 0;
    for (const Stage& stage : schedule.stages()) {
      std::vector<Transfer> first, other;
      stage.expand(0, first);
      messages += stage.rounds * static_cast<std::int64_t>(first.size());
      for (std::int64_t round = 1; round < stage.rounds; ++round) {
        other.clear();
        stage.expand(round, other);
        ASSERT_EQ(first.size(), other.size()) << item.name();
        for (std::size_t i = 0; i < first.size(); ++i) ASSERT_EQ(shape(first[i]), shape(other[i])) << item.name();
      }
    }
    EXPECT_EQ(schedule.messages(), messages) << item.name();
  }
}

// The engine reads the spans instead of the stages, since a pipelined tree has many stages with the same transfers.
TEST(Schemes, VisitEachTransferOfEveryStage) {
  using Seen = std::tuple<int, int, int, std::int64_t, bool, int>;
  for (const Case& item : all_cases()) {
    const Schedule schedule = item.schedule();
    std::vector<Seen> expanded, visited;
    std::vector<Transfer> transfers;
    for (int stage = 0; stage < static_cast<int>(schedule.stages().size()); ++stage) {
      transfers.clear();
      schedule.stages()[static_cast<std::size_t>(stage)].expand(0, transfers);
      for (const Transfer& t : transfers)
        expanded.emplace_back(stage, t.source, t.destination, t.length, t.reduce, t.lane);
    }
    schedule.visit_spans([&](const Transfer& t, int first, int end) {
      for (int stage = first; stage < end; ++stage)
        visited.emplace_back(stage, t.source, t.destination, t.length, t.reduce, t.lane);
    });
    std::sort(expanded.begin(), expanded.end());
    std::sort(visited.begin(), visited.end());
    EXPECT_EQ(visited, expanded) << item.name();
  }
}

// A pipelined tree over thousands of ranks has hundreds of stages; the work must not be their product.
TEST(Schemes, ATreeVisitsEachEdgeOnce) {
  const Schedule tree = parse_scheme("tree:64").plan({clustered(1024, 64), 1 << 26, Collective::all_reduce, ""});
  std::int64_t visits = 0;
  tree.visit_spans([&](const Transfer& /*transfer*/, int /*first*/, int /*end*/) { ++visits; });
  EXPECT_EQ(visits, 2 * 1023);  // each rank but the root sends up and receives from above
  EXPECT_GT(tree.stages().size(), 100U);
}

TEST(Schemes, StagesStayFewAtManyRanks) {
  for (const AllReduceScheme& scheme : allreduce_schemes()) {
    Topology topology = clustered(4096, 8);
    topology.node_switch = topology.fabric_switch = true;
    const PlanRequest request{topology, 64 << 20, Collective::all_reduce, scheme.name == "torus" ? "64x64" : ""};
    ASSERT_FALSE(scheme.why_not(request)) << scheme.name;
    EXPECT_LE(scheme.plan(request).stages().size(), 100U) << scheme.name;
  }
}

// Schemes with log2(n) rounds handle rank counts that are not powers of two in different ways.
TEST(Schemes, ServeEveryCount) {
  for (int ranks = 2; ranks <= 40; ++ranks) {
    for (const char* name : {"recursive-doubling", "halving-doubling", "tree", "double-binary-tree", "ring"}) {
      const Completeness verdict =
          is_complete(parse_scheme(name).plan({flat(ranks), 1000, Collective::all_reduce, ""}));
      EXPECT_TRUE(verdict) << name << ", " << ranks << ": " << verdict.violation;
    }
  }
}

TEST(Schemes, DoNotOverflowAtATebibyte) {
  constexpr std::int64_t kBytes = (std::int64_t{1} << 40) + 65'535;
  for (const char* name : {"ring", "halving-doubling", "multi-ring", "tree", "parameter-server", "torus:256x256"}) {
    const Schedule schedule = parse_scheme(name).plan({flat(65'536), kBytes, Collective::all_reduce, ""});
    std::vector<Transfer> transfers;
    for (const Stage& stage : {schedule.stages().front(), schedule.stages().back()}) {
      transfers.clear();
      stage.expand(stage.rounds - 1, transfers);
      for (const Transfer& t : transfers) {
        ASSERT_GT(t.length, 0) << name;
        ASSERT_GE(t.offset, 0) << name;
        ASSERT_LE(t.offset + t.length, schedule.bytes()) << name;
      }
    }
  }
}

// With one GPU a node no rank is an inner node of both trees, so both trees together use every rank's link.
TEST(DoubleBinaryTree, InnerNodesOfOneAreLeavesOfTheOther) {
  for (const int ranks : {8, 16, 31, 64}) {
    const Schedule schedule =
        parse_scheme("double-binary-tree").plan({flat(ranks), 1 << 20, Collective::all_reduce, ""});
    std::vector<std::set<std::pair<bool, int>>> children(static_cast<std::size_t>(ranks));
    std::vector<Transfer> transfers;
    for (std::int64_t round = 0; round < schedule.rounds(); ++round) {
      schedule.round(round, transfers);
      for (const Transfer& t : transfers)
        if (t.reduce)
          children[static_cast<std::size_t>(t.destination)].insert({t.offset >= schedule.bytes() / 2, t.source});
    }
    int both = 0;
    for (const auto& of_rank : children) {
      bool first = false, second = false;
      for (const auto& [tree, child] : of_rank) (tree ? second : first) = true;
      both += first && second ? 1 : 0;
    }
    EXPECT_LE(both, 1) << ranks;  // an odd count has one more inner place than leaves
  }
}

TEST(HierarchicalCopy, GroupsAreTheNodesOrElseTheHalves) {
  const auto mains = [](const Topology& topology) {
    std::vector<Transfer> transfers;
    parse_scheme("hierarchical-copy").plan({topology, 1, Collective::all_reduce, ""}).round(1, transfers);
    std::vector<int> sources;
    for (const Transfer& t : transfers) sources.push_back(t.source);
    return sources;
  };
  EXPECT_THAT(mains(clustered(12, 4)), ::testing::ElementsAre(4, 8));  // three nodes of four
  EXPECT_THAT(mains(clustered(8, 8)), ::testing::ElementsAre(4));      // one node: its halves
  EXPECT_THAT(mains(clustered(8, 1)), ::testing::ElementsAre(4));      // eight nodes of one: halves again
  EXPECT_THAT(mains(clustered(7, 7)), ::testing::ElementsAre(4));      // the first half is the larger
}

TEST(Schemes, AreFoundByTheirNames) {
  std::set<std::string_view> names;
  for (const AllReduceScheme& scheme : allreduce_schemes()) {
    EXPECT_EQ(&find_scheme(scheme.name), &scheme);
    EXPECT_TRUE(names.insert(scheme.name).second) << scheme.name << " stands twice";
    EXPECT_FALSE(scheme.summary.empty()) << scheme.name;
  }
  EXPECT_THAT(allreduce_scheme_names(), ::testing::UnorderedElementsAreArray(names));
}

TEST(Schemes, SayWhichThereAreWhenAskedForAnother) {
  EXPECT_THAT([] { parse_scheme("rings"); },
              ThrowsMessage<ConfigError>(
                  AllOf(HasSubstr("\"rings\""), HasSubstr("hierarchical-copy"), HasSubstr("did you mean \"ring\""))));
}

TEST(Schemes, SayWhatTheyCannotServe) {
  const auto refused = [](const char* scheme, const Topology& topology, Collective collective, const char* why) {
    EXPECT_THAT(
        [&] {
          parse_scheme(scheme).plan({topology, 1024, collective, ""});
        },
        ThrowsMessage<ConfigError>(AllOf(HasSubstr(scheme), HasSubstr(why))))
        << scheme;
  };
  refused("torus", flat(8), Collective::all_reduce, "torus:8x4");
  refused("torus:3x3", flat(8), Collective::all_reduce, "3x3");
  refused("torus:0x8", flat(8), Collective::all_reduce, "0x8");
  refused("in-network", flat(8), Collective::all_reduce, "reduces");
  refused("halving-doubling", flat(6), Collective::reduce_scatter, "power of two");
  refused("recursive-doubling", flat(8), Collective::broadcast, "broadcast");
  refused("parameter-server:9", flat(8), Collective::all_reduce, "1 to 8");
  refused("multi-ring:x", flat(8), Collective::all_reduce, "number of rings");
  refused("tree:0", flat(8), Collective::all_reduce, "pipeline chunks");
  Topology unlike = clustered(5, 4);
  refused("two-level:sharded", unlike, Collective::all_reduce, "every node");
  EXPECT_THAT([] { parse_scheme("ring:2"); }, ThrowsMessage<ConfigError>(HasSubstr("no variants")));
  EXPECT_THAT([] { parse_scheme("tree:"); }, ThrowsMessage<ConfigError>(HasSubstr("after the colon")));
}

}  // namespace
}  // namespace ganymede::sim
