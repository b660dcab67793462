#include "plan/cheapest.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "common/errors.hpp"
#include "common/json.hpp"
#include "common/units.hpp"
#include "platforms/catalog.hpp"
#include "support/errors.hpp"

namespace ganymede::plan {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const std::vector<std::string> kV100{"V100"};

struct Expected {
  std::string_view provider, region;
  int count;
  std::string_view instance;
  int nodes, gpus_per_node;
};

constexpr Expected kExpected[] = {
    {"aws", "us-east-1", 1, "p3.2xlarge", 1, 1},
    {"aws", "us-east-1", 2, "p3.2xlarge", 2, 1},  // 6.12 USD/h; a half-used p3.8xlarge would cost 12.24
    {"aws", "us-east-1", 4, "p3.8xlarge", 1, 4},  // costs as much as four p3.2xlarge, on one node
    {"azure", "eastus", 1, "Standard_NC6s_v3", 1, 1},
    {"azure", "eastus", 2, "Standard_NC12s_v3", 1, 2},
    {"azure", "eastus", 4, "Standard_NC24s_v3", 1, 4},  // NC24rs_v3 costs more
    {"gcp", "us-central1", 1, "n1-standard-8+1xV100", 1, 1},
    {"gcp", "us-central1", 2, "n1-standard-8+1xV100", 2, 1},
    {"gcp", "us-central1", 4, "n1-standard-32+4xV100", 1, 4},
    {"private", "on-premise", 4, "v100-host", 4, 1},
};

TEST(CheapestInstances, OfTheCatalogs) {
  for (const Expected& row : kExpected) {
    const InstanceSet found = cheapest_instances(platforms::catalog(row.provider), kV100, row.count, row.region,
                                                 platforms::Market::on_demand);
    EXPECT_EQ(found.instance->name, row.instance) << row.provider << " " << row.count;
    EXPECT_EQ(found.nodes, row.nodes) << row.provider << " " << row.count;
    EXPECT_EQ(found.gpus_per_node, row.gpus_per_node) << row.provider << " " << row.count;
    EXPECT_EQ(found.price,
              found.nodes * platforms::find_price(*found.instance, row.region, platforms::Market::on_demand)->per_hour);
  }
}

/// The cheapest set by trying all: every type, and every number of nodes over which the GPUs divide evenly.
std::optional<MicroUsdPerHour> cheapest_by_enumeration(const platforms::Platform& platform, int count,
                                                       std::string_view region) {
  std::optional<MicroUsdPerHour> best;
  for (const platforms::Instance& instance : platform.instances) {
    const platforms::Price* price = platforms::find_price(instance, region, platforms::Market::on_demand);
    if (price == nullptr || platform.gpu_of(instance).family != "V100") continue;
    for (int nodes = 1; nodes <= instance.available.value_or(count); ++nodes)
      if (count % nodes == 0 && count / nodes <= instance.gpus && (!best || nodes * price->per_hour < *best))
        best = nodes * price->per_hour;
  }
  return best;
}

TEST(CheapestInstances, IsWhatEnumerationFinds) {
  for (int count = 1; count <= 40; ++count)
    for (const auto& [provider, region] : {std::pair{"aws", "eu-west-1"}, {"azure", "eastus"}, {"gcp", "europe-west4"}})
      EXPECT_EQ(
          cheapest_instances(platforms::catalog(provider), kV100, count, region, platforms::Market::on_demand).price,
          cheapest_by_enumeration(platforms::catalog(provider), count, region))
          << provider << " " << count;
}

/// A platform with a type of instance for each pair: GPUs in a node, and USD/h.
platforms::Platform nodes_of(std::initializer_list<std::pair<int, double>> types) {
  std::string instances;
  for (const auto& [gpus, price] : types)
    instances += fmt::format(R"({} "of-{}": {{ "gpu": "G", "gpus": {},
      "nic": {{ "bandwidth": "1GB/s", "latency": "1us" }},
      "gpu_links": {{ "kind": "pcie", "bandwidth": "1GB/s", "latency": "1us" }},
      "prices": [ {{ "region": "r", "market": "spot", "per_hour": "{}USD/h", "as_of": "undated" }} ] }})",
                             instances.empty() ? "" : ",", gpus, gpus, price);
  return platforms::read_platform(JsonNode::parse(R"({ "schema": "ganymede.platform/1",
    "gpus": { "G": { "memory": "1GiB", "fp32": "1Tflop/s", "memory_bandwidth": "1GB/s" } },
    "instances": { )" + instances + " } }",
                                                  "test.json"));
}
const std::vector<std::string> kG{"G"};

TEST(CheapestInstances, PaysForUnusedGpusAndSpreadsEvenly) {
  const platforms::Platform platform = nodes_of({{4, 4}});
  const InstanceSet found = cheapest_instances(platform, kG, 6, "r", platforms::Market::spot);
  EXPECT_EQ(found.nodes, 2);
  EXPECT_EQ(found.gpus_per_node, 3);
  EXPECT_EQ(found.price, (MicroUsdPerHour{2 * 4'000'000}));
}

// Two nodes of two GPUs hold three GPUs for 2 USD/h, but not the same number on each node, which a run needs.
TEST(CheapestInstances, PassesOverWhatCannotBeSpreadEvenly) {
  const platforms::Platform platform = nodes_of({{2, 1}, {4, 3}});
  const InstanceSet found = cheapest_instances(platform, kG, 3, "r", platforms::Market::spot);
  EXPECT_EQ(found.instance->name, "of-4");
  EXPECT_EQ(found.nodes, 1);
  EXPECT_EQ(found.gpus_per_node, 3);
}

TEST(CheapestInstances, SaysThatNothingCanBeSpreadEvenly) {
  const platforms::Platform platform = nodes_of({{2, 1}});
  const std::string message =
      message_of<Infeasible>([&] { cheapest_instances(platform, kG, 3, "r", platforms::Market::spot); });
  EXPECT_THAT(message, AllOf(HasSubstr("no 3 x \"G\" in r"), HasSubstr("of-2 (2 x G)"),
                             HasSubstr("the same number of GPUs on each node")));
}

// Types that nothing joins are only used one by one; GPUs may be named by their family, and several kinds at once.
TEST(CheapestInstances, ByNameAndFamilyWithoutANetwork) {
  const platforms::Platform platform = platforms::read_platform(JsonNode::parse(R"({
    "schema": "ganymede.platform/1", "name": "lab",
    "gpus": { "A-1": { "family": "A", "memory": "1GiB", "fp32": "1Tflop/s", "memory_bandwidth": "1GB/s" },
              "A-2": { "family": "A", "memory": "1GiB", "fp32": "1Tflop/s", "memory_bandwidth": "1GB/s" },
              "B": { "memory": "1GiB", "fp32": "1Tflop/s", "memory_bandwidth": "1GB/s" } },
    "instances": {
      "a1": { "gpu": "A-1", "gpus": 1, "prices": [
        { "region": "r", "market": "on-demand", "per_hour": "3USD/h", "as_of": "undated" } ] },
      "a2": { "gpu": "A-2", "gpus": 1, "available": 2, "nic": { "bandwidth": "1GB/s", "latency": "1us" }, "prices": [
        { "region": "r", "market": "on-demand", "per_hour": "4USD/h", "as_of": "undated" } ] },
      "b": { "gpu": "B", "gpus": 1, "nic": { "bandwidth": "1GB/s", "latency": "1us" }, "prices": [
        { "region": "r", "market": "on-demand", "per_hour": "5USD/h", "as_of": "undated" },
        { "region": "s", "market": "on-demand", "per_hour": "1USD/h", "as_of": "undated" } ] } } })",
                                                                                "lab.json"));
  const auto cheapest = [&](const std::vector<std::string>& gpus, int count, std::string_view region = "r") {
    try {
      return cheapest_instances(platform, gpus, count, region, platforms::Market::on_demand).instance->name;
    } catch (const Infeasible& error) {
      return std::string(error.what());
    }
  };
  EXPECT_EQ(cheapest({"A"}, 1), "a1");
  EXPECT_EQ(cheapest({"A-2"}, 1), "a2");
  EXPECT_EQ(cheapest({"B", "A-2"}, 1), "a2");
  EXPECT_EQ(cheapest({"A"}, 2), "a2");      // nothing joins two a1
  EXPECT_EQ(cheapest({"A", "B"}, 3), "b");  // there are two a2
  EXPECT_EQ(cheapest({"B"}, 1, "s"), "b");
  EXPECT_EQ(cheapest({"A"}, 3),
            "the catalog lab holds no 3 x \"A\" in r on the on-demand market; there is a1 (1 x A-1), a2 (1 x A-2, at "
            "most 2 nodes)");
  EXPECT_EQ(cheapest({"A"}, 1, "s"),
            "the catalog lab holds no 1 x \"A\" in s on the on-demand market; it has no price there for a1 (1 x A-1), "
            "a2 (1 x A-2, at most 2 nodes)");
  EXPECT_EQ(cheapest({"C"}, 1), "the catalog lab holds no 1 x \"C\" in r on the on-demand market; its GPUs are A, B");
}

// Two types at the same price: fewer nodes are better, and of the same number the first.
TEST(CheapestInstances, OfTheSamePriceAreTheFewestNodes) {
  const auto chosen = [](const platforms::Platform& platform, int count) {
    return cheapest_instances(platform, kG, count, "r", platforms::Market::spot).instance->name;
  };
  EXPECT_EQ(chosen(nodes_of({{1, 1}, {2, 2}, {4, 4}}), 4), "of-4");
  EXPECT_EQ(chosen(nodes_of({{1, 1}, {2, 2}, {4, 5}}), 4), "of-2");
  EXPECT_EQ(chosen(nodes_of({{4, 4}, {5, 4}}), 4), "of-4");
}

std::string reason(std::string_view provider, const std::vector<std::string>& gpus, int count, std::string_view region,
                   platforms::Market market = platforms::Market::on_demand) {
  try {
    cheapest_instances(platforms::catalog(provider), gpus, count, region, market);
  } catch (const Infeasible& error) {
    return error.what();
  }
  return "feasible";
}

TEST(CheapestInstances, SaysWhatThereIsWhenNothingFits) {
  EXPECT_THAT(
      reason("private", kV100, 5, "on-premise"),
      AllOf(HasSubstr("no 5 x \"V100\" in on-premise"), HasSubstr("v100-host (1 x V100-PCIE-16GB, at most 4 nodes)")));
  EXPECT_THAT(reason("private", kV100, 1, "on-premise", platforms::Market::spot),
              HasSubstr("no price there for v100-host"));
  EXPECT_THAT(reason("aws", {"V200"}, 1, "us-east-1"), AllOf(HasSubstr("its GPUs are"), HasSubstr("V100")));
}

}  // namespace
}  // namespace ganymede::plan
