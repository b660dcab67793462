// The classes of ranks, links and messages of small literal fabrics.

#include "sim/engine/symmetry.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "common/units.hpp"
#include "engines.hpp"
#include "sim/collectives/allreduce.hpp"
#include "sim/engine/folded_engine.hpp"
#include "support/when.hpp"
#include "test_platform.hpp"

namespace ganymede::sim {
namespace {

using namespace literals;
using testing::DoubleNear;
using testing::ElementsAre;

/// The quotient of one all-reduce over all ranks.
Quotient quotient(const FabricGraph& fabric, const char* scheme, std::int64_t bytes,
                  std::vector<Seconds> arrivals = {}) {
  const Schedule schedule = parse_scheme(scheme).plan({fabric.topology(), bytes, Collective::all_reduce, ""});
  const Job job = job_of(schedule, std::move(arrivals));
  return Symmetry(fabric, {&job, 1}).quotient();
}

/// The names of the links that represent the classes.
std::vector<std::string> link_names(const FabricGraph& fabric, const Quotient& quotient) {
  std::vector<std::string> names;
  for (const std::size_t link : quotient.link_of_class) names.push_back(fabric.links()[link].name);
  return names;
}

// All ranks send to the right and receive from the left; every direction of every NIC carries one message a round.
TEST(Symmetry, RanksAndLinksOfARingAreAlike) {
  const platforms::Platform platform = star_platform("12.5GB/s", "5us", "1us");
  const FabricGraph fabric(platform, platform.instance("one"), 4, 1);
  const Quotient ring = quotient(fabric, "ring", 4'000'000);
  EXPECT_EQ(ring.members, 4);
  EXPECT_THAT(ring.class_of, ElementsAre(ElementsAre(0, 0, 0, 0)));
  EXPECT_THAT(link_names(fabric, ring), ElementsAre("nic.0.up"));
  ASSERT_EQ(ring.calls[0][0].stages.size(), 2U);
  EXPECT_EQ(ring.calls[0][0].rounds, 6);
  const QuotientStage& reduce_scatter = ring.calls[0][0].stages[0];
  EXPECT_EQ(reduce_scatter.rounds, 3);
  // The ranks are at both ends of the only class of messages of each stage.
  EXPECT_THAT(ring.transfers_of(0, 0), ElementsAre(0, 0, 1, 1));
  ASSERT_EQ(ring.transfers.size(), 2U);
  const QuotientTransfer& message = ring.transfers[0];
  EXPECT_EQ(message.first_round, 0);
  EXPECT_EQ(message.end_round, 3);
  EXPECT_DOUBLE_EQ(message.adding, 3 * 1e6 / 900e9);
  ASSERT_EQ(message.flows.size(), 1U);
  EXPECT_EQ(message.flows[0].bytes, 1e6);
  EXPECT_DOUBLE_EQ(message.flows[0].latency, 11e-6);
  ASSERT_EQ(message.flows[0].uses.size(), 1U);
  EXPECT_EQ(message.flows[0].uses[0].weight, 1);
}

// Rank 0 differs from the others. In the reduction its downlink carries three messages and each other rank's uplink
// one; on the way back its uplink carries three and each other rank's downlink one.
TEST(Symmetry, TheRootOfReduceToOneIsAClassByItself) {
  const platforms::Platform platform = star_platform("12.5GB/s", "5us", "1us");
  const FabricGraph fabric(platform, platform.instance("one"), 4, 1);
  const Quotient one = quotient(fabric, "reduce-to-one", 1'000'000);
  EXPECT_THAT(one.class_of, ElementsAre(ElementsAre(0, 1, 1, 1)));
  EXPECT_THAT(link_names(fabric, one), ElementsAre("nic.0.up", "nic.0.down", "nic.1.up", "nic.1.down"));
  ASSERT_EQ(one.transfers.size(), 2U);  // there and back
  const QuotientTransfer& message = one.transfers[0];
  EXPECT_EQ(message.source, 1);
  EXPECT_EQ(message.destination, 0);
  EXPECT_THAT(message.adding, DoubleNear(3 * (3 * 1e6 / 900e9), 1e-15));  // three buffers
  std::vector<std::pair<int, double>> uses;
  for (const LinkUse& use : message.flows[0].uses) uses.emplace_back(use.link, use.weight);
  EXPECT_THAT(uses, ElementsAre(std::pair(2, 1.0), std::pair(1, 3.0)));  // nic.1.up once, nic.0.down three times
}

// GPUs at the same place in their nodes of four are alike. Within a node they differ: one sends to the other node, one
// receives from it, two do neither.
TEST(Symmetry, NodesAreAlikeAndPlacesInThemAreNot) {
  const platforms::Platform platform = star_platform("12.5GB/s", "5us", "1us");
  const FabricGraph fabric(platform, platform.instance("four"), 2, 4);
  const Quotient ring = quotient(fabric, "ring", 8'000'000);
  EXPECT_THAT(ring.class_of, ElementsAre(ElementsAre(0, 1, 2, 3, 0, 1, 2, 3)));
}

// In a ring, each rank has a different distance from the rank that arrives late.
TEST(Symmetry, ALateRankTellsAllRanksOfARingApart) {
  const platforms::Platform platform = star_platform("12.5GB/s", "5us", "1us");
  const FabricGraph fabric(platform, platform.instance("one"), 4, 1);
  EXPECT_EQ(quotient(fabric, "ring", 4'000'000, {0_s, 0_s, 1_s, 0_s}).ranks.size(), 4U);
  // In reduce-to-one only the root, the late rank and the punctual ones differ.
  const Quotient one = quotient(fabric, "reduce-to-one", 4'000'000, {0_s, 0_s, 1_s, 0_s});
  EXPECT_THAT(one.class_of, ElementsAre(ElementsAre(0, 1, 2, 1)));
  EXPECT_EQ(one.ranks[2].issue[0], 1);
}

// Two of three nodes hang on one switch of the first level, and the third on another. Messages between the two stay
// below the second level, so the two differ from the third.
TEST(Symmetry, AnUnevenFabricTellsRanksApart) {
  const platforms::Platform platform =
      platform_of(R"("gpus": 1, "nic": {"bandwidth": "10GB/s", "latency": "5us"})",
                  R"({"kind": "fat-tree", "levels": [{"nodes": 2, "latency": "2us"}]})");
  const FabricGraph even(platform, platform.instance("node"), 4, 1), uneven(platform, platform.instance("node"), 3, 1);
  // Every rank exchanges bytes with every other one.
  EXPECT_THAT(quotient(even, "parameter-server:all", 4000).class_of, ElementsAre(ElementsAre(0, 0, 0, 0)));
  EXPECT_THAT(quotient(uneven, "parameter-server:all", 3000).class_of, ElementsAre(ElementsAre(0, 0, 1)));
}

TEST(Symmetry, CommunicatorsHaveClassesOfTheirOwn) {
  const platforms::Platform platform = star_platform("12.5GB/s", "5us", "1us");
  const FabricGraph fabric(platform, platform.instance("four"), 2, 2);
  const Schedule ring = parse_scheme("ring").plan({flat(2), 1 << 20, Collective::all_reduce, ""});
  const std::vector<Seconds> zero(2);
  const Job two{{Communicator{{0, 2}, {{&ring, zero}}}, Communicator{{1, 3}, {{&ring, zero}}}}};
  const Quotient both = Symmetry(fabric, {&two, 1}).quotient();
  EXPECT_THAT(both.class_of, ElementsAre(ElementsAre(0, 0), ElementsAre(1, 1)));
  EXPECT_EQ(both.ranks[1].communicator, 1);
}

// Two approximations with the same times are no exact ones: on racks of 33 the first two of a double tree agree to the
// last digit, and are 5e-5 off.
TEST(Symmetry, TimesOfMergedRanksAreNeverCalledExact) {
  NOT_SANITIZED("it simulates a thousand unlike ranks");
  const platforms::Platform platform = platform_of(
      R"("gpus": 1, "nic": {"bandwidth": "12.5GB/s", "latency": "5us"})",
      R"({"kind": "fat-tree", "latency": "1us", "levels": [{"nodes": 33, "oversubscription": 3, "latency": "3us"}]})");
  const FabricGraph fabric(platform, platform.instance("node"), 1050, 1);
  const Schedule schedule =
      parse_scheme("double-binary-tree").plan({fabric.topology(), 100'000'000, Collective::all_reduce, ""});
  const Job job = job_of(schedule);
  EXPECT_GT(run_folded(fabric, {&job, 1}).difference, 0);
  EXPECT_EQ(run_folded(fabric, {&job, 1}, false, 0).difference, 0);
}

// A pipelined tree over racks that zones cut: a picosecond decides which of two messages has a link first, and a
// millisecond later that is microseconds.
TEST(Symmetry, AResultThatPicosecondsDecideSaysBySoMuch) {
  const platforms::Platform platform = platform_of(
      R"("gpus": 1, "nic": {"bandwidth": "12.5GB/s", "latency": "2us"})",
      R"({"kind": "fat-tree", "latency": "1us", "zones": {"nodes": 5, "bandwidth": "25GB/s", "latency": "1ms"},
          "levels": [{"nodes": 4, "oversubscription": 2, "latency": "1us"}]})");
  const FabricGraph fabric(platform, platform.instance("node"), 30, 1);
  const auto planned = [&](const char* scheme) {
    return parse_scheme(scheme).plan({fabric.topology(), 100'000'000, Collective::all_reduce, ""});
  };
  const Schedule tree = planned("tree"), ring = planned("ring");
  const Job job = job_of(tree), steady = job_of(ring);
  const double message = finish(Engine::message, fabric, tree), folded = finish(Engine::folded, fabric, tree);
  const double off = std::abs(folded / message - 1), said = run_folded(fabric, {&job, 1}, true).difference;
  EXPECT_GT(off, 1e-5);
  EXPECT_GT(said, off / 2);
  EXPECT_LT(said, off * 2);
  EXPECT_EQ(run_folded(fabric, {&steady, 1}, true).difference, 0);
}

}  // namespace
}  // namespace ganymede::sim
