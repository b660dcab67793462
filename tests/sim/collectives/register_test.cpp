// The register of schemes: whatever lists, documents or offers schemes walks it, so one more scheme is one file and one
// row. A made-up scheme shows that the walks need nothing else.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>

#include "common/errors.hpp"
#include "sim/collectives/allreduce.hpp"
#include "verify.hpp"

namespace ganymede::sim {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using testing::ThrowsMessage;

/// Sends the bytes of rank 0 to all others, from one to the next.
Schedule plan_relay(const PlanRequest& request) {
  const int ranks = request.topology.ranks;
  return Schedule(ranks, request.bytes, {Stage{1, [=](std::int64_t, std::vector<Transfer>& out) {
                                                 for (int rank = 1; rank < ranks; ++rank)
                                                   out.push_back({0, rank, 0, request.bytes, false});
                                               }}});
}

std::optional<std::string> refuse_relay(const PlanRequest& request) {
  if (request.variant.empty() || request.variant == "fast") return std::nullopt;
  return "expected fast or nothing";
}

constexpr AllReduceScheme kRelay{
    .name = "relay",
    .summary = "one after the other",
    .variants = "fast",
    .needs = "patience",
    .collectives = {Collective::broadcast},
    .plan = plan_relay,
    .refusal = refuse_relay,
};

std::vector<AllReduceScheme> with_relay() {
  std::vector<AllReduceScheme> table(allreduce_schemes().begin(), allreduce_schemes().end());
  table.push_back(kRelay);
  return table;
}

TEST(Register, AMadeUpSchemeIsListedOfferedAndDocumented) {
  const std::vector<AllReduceScheme> table = with_relay();
  EXPECT_THAT(allreduce_scheme_names(table), Contains("relay"));
  EXPECT_EQ(find_scheme("relay", table).description(), "one after the other (:fast)");
  EXPECT_THAT(allreduce_scheme_docs(table),
              HasSubstr("- `relay`: one after the other. After a colon: fast. Needs patience. Other collectives: "
                        "broadcast.\n"));
  EXPECT_THAT([&] { parse_scheme("relai", table); }, ThrowsMessage<ConfigError>(HasSubstr("did you mean \"relay\"")));
  EXPECT_THAT(allreduce_scheme_names(), Not(Contains("relay")));
}

TEST(Register, AMadeUpSchemeIsParsedAndPlanned) {
  const std::vector<AllReduceScheme> table = with_relay();
  const Scheme relay = parse_scheme("relay:fast", table);
  EXPECT_EQ(relay.name(), "relay:fast");
  const Schedule schedule = relay.plan({flat(3), 8, Collective::broadcast, ""});
  EXPECT_EQ(schedule.messages(), 2);
  EXPECT_TRUE(is_complete(schedule, Collective::broadcast));
  EXPECT_THAT(
      [&] {
        relay.plan({flat(3), 8, Collective::all_reduce, ""});
      },
      ThrowsMessage<ConfigError>(HasSubstr("knows no all-reduce")));
  EXPECT_THAT(
      [&] {
        parse_scheme("relay:slow", table).plan({flat(3), 8, Collective::broadcast, ""});
      },
      ThrowsMessage<ConfigError>(HasSubstr("expected fast")));
}

TEST(Register, ThePatternForJsonSchemasAcceptsNamesAndTheirVariants) {
  const std::vector<AllReduceScheme> table = with_relay();
  const std::regex pattern(allreduce_scheme_pattern(table), std::regex::ECMAScript);
  for (const AllReduceScheme& scheme : table) {
    const std::string name(scheme.name);
    EXPECT_TRUE(std::regex_match(name, pattern)) << name;
    EXPECT_EQ(std::regex_match(name + ":8", pattern), !scheme.variants.empty()) << name;
    EXPECT_FALSE(std::regex_match(name + ":", pattern)) << name;
  }
  EXPECT_FALSE(std::regex_match("rings", pattern));
}

TEST(Register, EverySchemeHasAFileOfItsName) {
  namespace fs = std::filesystem;
  std::vector<std::string> files;
  for (const auto& file : fs::directory_iterator(fs::path(GANYMEDE_SOURCE_DIR) / "sim/collectives/schemes")) {
    std::string name = file.path().stem().string();
    std::replace(name.begin(), name.end(), '_', '-');
    files.push_back(name);
  }
  EXPECT_THAT(files, testing::UnorderedElementsAreArray(allreduce_scheme_names()))
      << "a file without a row in sim/collectives/allreduce.cpp, or the other way round";
}

TEST(Register, TheDocumentationHoldsTheList) {
  std::ifstream file(std::string(GANYMEDE_SOURCE_DIR) + "/docs/model.md");
  const std::string wrapped{std::istreambuf_iterator<char>(file), {}};
  const std::string text = std::regex_replace(wrapped, std::regex("\\n  "), " ");
  EXPECT_NE(text.find(allreduce_scheme_docs()), std::string::npos)
      << "docs/model.md must hold this list, in lines of at most 100 columns:\n"
      << allreduce_scheme_docs();
}

TEST(Register, CollectivesAreParsedByTheirNames) {
  for (const std::string& name : collective_names()) EXPECT_EQ(to_string(parse_collective(name)), name);
  EXPECT_THAT([] { parse_collective("reduction"); },
              ThrowsMessage<ConfigError>(HasSubstr("\"gather\" or \"scatter\"")));
}

// nccl-tests, doc/PERFORMANCE.md: 2(n-1)/n, (n-1)/n, (n-1)/n and 1.
TEST(Register, BusBandwidthIsThatOfNcclTests) {
  EXPECT_DOUBLE_EQ(bus_bandwidth_factor(Collective::all_reduce, 4), 2 * 3.0 / 4);
  EXPECT_DOUBLE_EQ(bus_bandwidth_factor(Collective::reduce_scatter, 4), 3.0 / 4);
  EXPECT_DOUBLE_EQ(bus_bandwidth_factor(Collective::all_gather, 4), 3.0 / 4);
  EXPECT_DOUBLE_EQ(bus_bandwidth_factor(Collective::broadcast, 4), 1);
  EXPECT_DOUBLE_EQ(bus_bandwidth_factor(Collective::broadcast, 1), 0);
  for (const Collective part : {Collective::all_to_all, Collective::gather, Collective::scatter})
    EXPECT_DOUBLE_EQ(bus_bandwidth_factor(part, 4), 3.0 / 4);
  for (const Collective whole : {Collective::reduce, Collective::send_receive})
    EXPECT_DOUBLE_EQ(bus_bandwidth_factor(whole, 4), 1);
}

}  // namespace
}  // namespace ganymede::sim
