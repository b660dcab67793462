#include "platforms/platform.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/errors.hpp"
#include "common/json.hpp"
#include "common/units.hpp"
#include "platforms/overlay.hpp"

namespace ganymede::platforms {
namespace {

using namespace literals;
using testing::AllOf;
using testing::HasSubstr;

/// The smallest file that is valid: what docs call essential.
constexpr std::string_view kSmallest = R"({
  "schema": "ganymede.platform/1",
  "gpus": { "H100": { "memory": "80GiB", "fp32": "67Tflop/s", "memory_bandwidth": "3350GB/s" } },
  "instances": { "node": { "gpu": "H100", "gpus": 1 } } })";

/// The design's example.
constexpr std::string_view kLab = R"({
  "schema": "ganymede.platform/1", "provider": "private", "name": "lab",
  "gpus": { "H100": { "memory": "80GiB", "fp32": "67Tflop/s", "tensor": "990Tflop/s",
                      "memory_bandwidth": "3350GB/s", "power": { "idle": "70W", "peak": "700W" } } },
  "instances": { "node": { "gpu": "H100", "gpus": 1, "vcpus": 16, "memory": "128GiB",
      "gpu_links": { "kind": "nvlink", "bandwidth": "450GB/s", "latency": "1us" },
      "host_link": { "bandwidth": "25GB/s", "latency": "1us" },
      "nic": { "bandwidth": "100Gbit/s", "latency": "5us" },
      "prices": [ { "region": "room-1", "market": "on-demand", "per_hour": "2.00USD/h", "as_of": "2026-11-01", "source": "example" } ] } },
  "regions": { "room-1": { "carbon": "400g/kWh", "pue": 1.5 } },
  "fabric": { "kind": "switch", "latency": "1us", "oversubscription": 1 },
  "storage": { "nfs": { "read": "2GB/s", "write": "1GB/s", "iops": 30000, "per_gb_month": "0USD" } },
  "provisioning": { "boot": "60s" }, "billing": { "granularity": "1s", "minimum": "60s" } })";

Platform parse(std::string_view text) { return read_platform(JsonNode::parse(text, "lab.json")); }

std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string result(text);
  const std::size_t at = result.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return result.replace(at, from.size(), to);
}

std::string error_of(const std::string& text) {
  try {
    parse(text);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Platform, ReadsTheDesignsExample) {
  const Platform lab = parse(kLab);
  EXPECT_EQ(lab.name, "lab");
  const Instance& node = lab.instance("node");
  const Gpu& gpu = lab.gpu_of(node);
  EXPECT_EQ(gpu.memory, 80_GiB);
  EXPECT_EQ(gpu.fp32, 67.0_Tflop_per_s);
  EXPECT_EQ(gpu.tensor, 990.0_Tflop_per_s);
  EXPECT_EQ(gpu.peak, Watts{700});
  EXPECT_EQ(node.gpu_links->kind, GpuLinks::Kind::nvlink);
  EXPECT_EQ(node.gpu_links->bandwidth, 450_GB_per_s);
  EXPECT_EQ(node.host_link->latency, 1_us);
  EXPECT_EQ(node.nic->bandwidth, 100_Gbit_per_s);
  EXPECT_EQ(node.nic->latency, 5_us);
  EXPECT_EQ(lab.price(node, "room-1", Market::on_demand).per_hour, (MicroUsdPerHour{2'000'000}));
  EXPECT_EQ(lab.region("room-1")->pue, 1.5);
  EXPECT_EQ(lab.fabric.latency, 1_us);
  EXPECT_EQ(lab.storage_class("nfs").write, 1_GB_per_s);
  EXPECT_EQ(lab.storage_class("nfs").rates.per_month, MicroUsd{0});
  EXPECT_EQ(lab.boot(node).median, 60_s);
  EXPECT_EQ(lab.billing.minimum, 60_s);
}

TEST(Platform, FillsInTheDocumentedDefaults) {
  const Platform least = parse(kSmallest);
  EXPECT_EQ(least.provider, "private");
  EXPECT_EQ(least.name, "private");
  EXPECT_EQ(least.gpus[0].family, "H100");
  EXPECT_EQ(least.gpus[0].launch, 0_s);
  EXPECT_FALSE(least.instances[0].nic.has_value());
  EXPECT_EQ(least.fabric.latency, 0_s);
  EXPECT_EQ(least.fabric.oversubscription, 1);
  EXPECT_EQ(least.boot(least.instances[0]).median, 0_s);
  EXPECT_EQ(least.billing.granularity, 1_s);
  EXPECT_EQ(least.billing.minimum, 0_s);
  EXPECT_EQ(least.region("room-1"), nullptr);
}

TEST(Platform, ANicIsGpuDirectWithoutRendezvousUnlessItSaysOtherwise) {
  const Nic plain = *parse(kLab).instance("node").nic;
  EXPECT_TRUE(plain.gpu_direct);
  EXPECT_EQ(plain.rendezvous, 0_s);
  const Nic slow =
      *parse(replaced(kLab, R"("latency": "5us")", R"("latency": "5us", "rendezvous": "7us", "gpu_direct": false)"))
           .instance("node")
           .nic;
  EXPECT_FALSE(slow.gpu_direct);
  EXPECT_EQ(slow.rendezvous, 7_us);
  EXPECT_FALSE(slow.rendezvous_in_tuner);
  const auto tuned = parse(replaced(kLab, R"("latency": "5us")", R"("latency": "5us", "rendezvous_in_tuner": true)"));
  EXPECT_TRUE(tuned.instance("node").nic->rendezvous_in_tuner);
}

TEST(Platform, ANicMayBurst) {
  const Platform lab = parse(replaced(kLab, R"("latency": "5us")", R"("latency": "5us", "burst": "400Gbit/s")"));
  EXPECT_EQ(lab.instance("node").nic->burst, 400_Gbit_per_s);
}

TEST(Platform, ReadsTheLimitsOfTcp) {
  const auto nic = [](const std::string& more) {
    return *parse(replaced(kLab, R"("latency": "5us")", R"("latency": "5us")" + more)).instance("node").nic;
  };
  EXPECT_FALSE(nic("").tcp);
  const Nic::Tcp tcp = *nic(R"(, "tcp": {"per_flow": "10Gbit/s", "sockets": 16})").tcp;
  EXPECT_EQ(tcp.per_flow, 10_Gbit_per_s);
  EXPECT_EQ(tcp.sockets, 16);
  EXPECT_EQ(nic(R"(, "tcp": {})").tcp->sockets, 1);
}

TEST(Platform, KeepsMoneyExactToTheMicroDollar) {
  const Platform lab = parse(replaced(replaced(kLab, "2.00USD/h", "0.000001USD/h"), "\"0USD\"", "\"0.023USD\""));
  EXPECT_EQ(lab.price(lab.instance("node"), "room-1", Market::on_demand).per_hour.value, 1);
  EXPECT_EQ(lab.storage_class("nfs").rates.per_month->value, 23'000);
}

struct Bad {
  std::string_view from, to, pointer, says;
};

// What the user can get wrong, the place that the message must name, and what it must say.
constexpr Bad kBad[] = {
    {"ganymede.platform/1", "ganymede.platform/2", "/schema", "ganymede.platform/1"},
    {R"("fp32": "67Tflop/s")", R"("fp32": 67)", "/gpus/H100/fp32", "bare number"},
    {R"("fp32": "67Tflop/s")", R"("fp32": "0Tflop/s")", "/gpus/H100/fp32", "above zero"},
    {R"("fp32": "67Tflop/s")", R"("fp32": "nanTflop/s")", "/gpus/H100/fp32", ""},
    {R"("fp32": "67Tflop/s")", R"("fp32": "67GB/s")", "/gpus/H100/fp32", ""},
    {R"("fp32")", R"("fp3")", "/gpus/H100/fp3", R"(did you mean "fp32")"},
    {R"("idle": "70W")", R"("idle": "701W")", "/gpus/H100/power", "idle is above peak"},
    {R"("gpu": "H100")", R"("gpu": "H10")", "/instances/node/gpu", R"(did you mean "H100")"},
    {R"("gpus": 1)", R"("gpus": 0)", "/instances/node/gpus", "found 0, expected an integer from 1"},
    {R"("gpus": 1)", R"("gpus": -1)", "/instances/node/gpus", "found -1"},
    {R"("gpus": 1)", R"("gpus": 1.5)", "/instances/node/gpus", "found 1.5"},
    {R"("vcpus": 16)", R"("vcpu": 16)", "/instances/node/vcpu", R"(did you mean "vcpus")"},
    {R"("kind": "nvlink")", R"("kind": "nvlnk")", "/instances/node/gpu_links/kind", R"(did you mean "nvlink")"},
    {R"("latency": "1us" },
      "host_link": { "bandwidth": "25GB/s", "latency": "1us" },)",
     R"("latency": "1us", "with_host_link": true },)", "/instances/node", "there is no host_link"},
    {R"("bandwidth": "100Gbit/s")", R"("bandwidth": "0Gbit/s")", "/instances/node/nic/bandwidth", "above zero"},
    {R"("latency": "5us")", R"("latency": "5us", "burst": "1Gbit/s")", "/instances/node/nic/burst",
     "expected more than the bandwidth"},
    {R"("latency": "5us")", R"("latency": "-5us")", "/instances/node/nic/latency", ""},
    {R"("latency": "5us")", R"("latency": "5us", "gpu_direct": "no")", "/instances/node/nic/gpu_direct",
     "true or false"},
    {R"("latency": "5us")", R"("latency": "5us", "tcp": {"sockets": 65})", "/instances/node/nic/tcp/sockets",
     "from 1 to 64"},
    {R"("latency": "5us")", R"("latency": "5us", "tcp": {"socket": 4})", "/instances/node/nic/tcp/socket",
     R"(did you mean "sockets")"},
    {R"("2.00USD/h")", R"("-2USD/h")", "/instances/node/prices/0/per_hour", ""},
    {R"("2.00USD/h")", R"(2.00)", "/instances/node/prices/0/per_hour", "bare number"},
    {R"("2.00USD/h")", R"("2.0000001USD/h")", "/instances/node/prices/0/per_hour", ""},
    {R"("on-demand")", R"("ondemand")", "/instances/node/prices/0/market", R"(did you mean "on-demand")"},
    {R"("2026-11-01")", R"("2026-02-29")", "/instances/node/prices/0/as_of", "YYYY-MM-DD"},
    {R"("2026-11-01")", R"("2026-13-01")", "/instances/node/prices/0/as_of", "YYYY-MM-DD"},
    {R"("2026-11-01")", R"("1.11.2026")", "/instances/node/prices/0/as_of", "YYYY-MM-DD"},
    {R"("pue": 1.5)", R"("pue": 0.9)", "/regions/room-1/pue", "from 1"},
    {R"("oversubscription": 1)", R"("oversubscription": 0.5)", "/fabric/oversubscription", "from 1"},
    {R"("oversubscription": 1)", R"("oversubscription": 1, "nccl": 2.18)", "/fabric/nccl", "in quotes"},
    {R"("kind": "switch")", R"("kind": "ring")", "/fabric/kind", "switch"},
    {R"("iops": 30000)", R"("iops": 0)", "/storage/nfs/iops", "found 0"},
    {R"("0USD")", R"("0USD/h")", "/storage/nfs/per_gb_month", "USD"},
    {R"("0USD")", R"("-1USD")", "/storage/nfs/per_gb_month", "USD"},
    {R"("granularity": "1s")", R"("granularity": "0s")", "/billing/granularity", "above zero"},
    {R"("boot": "60s")", R"("boot": "60")", "/provisioning/boot", ""},
};

TEST(Platform, NamesThePlaceAndTheFaultOfBadInput) {
  for (const Bad& bad : kBad) {
    const std::string place = "lab.json: " + std::string(bad.pointer) + ": ";
    EXPECT_THAT(error_of(replaced(kLab, bad.from, bad.to)), AllOf(HasSubstr(place), HasSubstr(std::string(bad.says))))
        << bad.to;
  }
}

TEST(Platform, RefusesOnePriceInTwoUnits) {
  EXPECT_THAT(
      error_of(replaced(kLab, R"("per_gb_month": "0USD")", R"("per_gb_month": "0USD", "per_gib_month": "0USD")")),
      testing::HasSubstr("/storage/nfs/per_gib_month: stands beside \"per_gb_month\"; keep one of the two"));
}

// 12,000 USD over 4 x 8,766 h, used at 60 %, and 0.35 USD/h of staff: what of it is assumed is said.
TEST(Ownership, SaysWhatItAssumes) {
  const Ownership owned{.capital = {12'000'000'000}, .life_years = 4, .utilization = 0.6, .staff = {350'000}};
  EXPECT_EQ(owned.per_hour().value, 920'386);  // 12000 / 21038.4 + 0.35
  EXPECT_EQ(owned.terms(), "12000.00 USD over 4 years at 60 % use, staff 0.35 USD/h");
  // (12,000 / 4 + 600 + 8,000) USD a year over 8,766 h: 1.323295 USD.
  const Ownership kept{.capital = {12'000'000'000},
                       .life_years = 4,
                       .staff = {},
                       .space_per_year = {600'000'000},
                       .people_per_year = {8'000'000'000}};
  EXPECT_EQ(kept.per_hour(), MicroUsdPerHour{std::llround(11'600e6 / 8'766)});
  EXPECT_EQ(kept.terms(),
            "12000.00 USD over 4 years at 100 % use, space 600.00 USD a year, people 8000.00 USD a year, no staff");
  const Ownership bare{.capital = {12'000'000'000}, .life_years = 4, .staff = {}};
  EXPECT_EQ(bare.terms(), "12000.00 USD over 4 years at 100 % use, no staff");
}

TEST(Platform, RefusesTwoPricesForOneRegionAndMarket) {
  const std::string row =
      R"({ "region": "room-1", "market": "on-demand", "per_hour": "1USD/h", "as_of": "undated" }, )";
  EXPECT_THAT(
      error_of(replaced(kLab, R"("prices": [ )", R"("prices": [ )" + row)),
      AllOf(HasSubstr("/instances/node/prices/1: "), HasSubstr("a second on-demand price in region \"room-1\"")));
}

TEST(Platform, RefusesWhatNothingJoins) {
  EXPECT_THAT(error_of(replaced(kSmallest, R"("gpus": 1)", R"("gpus": 2)")), HasSubstr("/instances/node: 2 GPUs and"));
  EXPECT_THAT(
      error_of(replaced(kSmallest, R"("gpus": 1)",
                        R"("gpus": 1, "nic": { "bandwidth": "1GB/s", "latency": "1us", "gpu_direct": false })")),
      HasSubstr("/instances/node: nic says \"gpu_direct\": false"));
}

TEST(Platform, NeedsAGpuAndAnInstance) {
  EXPECT_THAT(error_of(R"({ "schema": "ganymede.platform/1", "gpus": {}, "instances": {} })"),
              HasSubstr("/gpus: is empty, expected at least one GPU"));
  EXPECT_THAT(error_of(R"({ "schema": "ganymede.platform/1" })"), HasSubstr("\"gpus\" is missing"));
}

TEST(Platform, ReportsAFileThatIsNotThere) { EXPECT_THROW(load_platform("no/such/platform.json"), ConfigError); }

TEST(PlatformLookup, PlacesItsErrorAtTheValueThatAsked) {
  const Platform lab = parse(kLab);
  const JsonNode scenario =
      JsonNode::parse(R"({ "instance": "nod", "region": "room-2", "market": "spot" })", "scenario.json");
  const auto message = [](const auto& lookup) -> std::string {
    try {
      lookup();
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "no error";
  };
  const JsonNode instance = scenario.child("instance");
  EXPECT_EQ(message([&] { lab.instance("nod", &instance); }),
            "scenario.json: /instance: the catalog lab has no instance \"nod\"; did you mean \"node\"?");
  EXPECT_EQ(message([&] { lab.instance("p3.2xlarge"); }),
            "the catalog lab has no instance \"p3.2xlarge\"; it has node");

  const Instance& node = lab.instance("node");
  const JsonNode region = scenario.child("region");
  const JsonNode market = scenario.child("market");
  EXPECT_EQ(message([&] { lab.price(node, "room-2", Market::spot, &region, &market); }),
            "scenario.json: /region: the catalog lab has no price of node in region \"room-2\"; did you mean "
            "\"room-1\"?");
  EXPECT_EQ(message([&] { lab.price(node, "room-1", Market::spot, &region, &market); }),
            "scenario.json: /market: the catalog lab has no spot price of node in room-1; it has on-demand");
  // Each market is named once, however many zones have prices of their own.
  const Platform aws = load_platform_choice("aws", "");
  EXPECT_EQ(message([&] { aws.price(aws.instance("p3.2xlarge"), "us-east-1", Market::reserved_3y, &region, &market); }),
            "scenario.json: /market: the catalog aws has no reserved-3y price of p3.2xlarge in us-east-1; it has "
            "on-demand, spot");
}

TEST(Markets, HaveOneNameEach) {
  for (const std::string& name : market_names()) EXPECT_EQ(to_string(*parse_market(name)), name);
  EXPECT_EQ(parse_market("spotty"), std::nullopt);
}

TEST(Platform, AmountsInAnotherCurrencyAreConverted) {
  std::string text(kLab);
  const auto replace = [&](const std::string& from, const std::string& to) {
    ASSERT_NE(text.find(from), std::string::npos) << from;
    text.replace(text.find(from), from.size(), to);
  };
  replace(R"("provider")", R"("currency": { "code": "EUR", "usd": 1.1, "as_of": "2026-11-01" }, "provider")");
  replace("2.00USD/h", "2EUR/h");
  const Platform lab = read_platform(JsonNode::parse(text, "lab.json"));
  EXPECT_EQ(lab.instances[0].prices[0].per_hour.value, 2'200'000);
  EXPECT_EQ(lab.currency, "EUR at 1.1 USD of 2026-11-01");
  // A third currency, or one that nobody declared, is an error with its place.
  replace(R"("0USD")", R"("0CHF")");
  EXPECT_THAT(error_of(text), testing::HasSubstr("/storage/nfs/per_gb_month: found \"0CHF\""));
  EXPECT_THAT(error_of(replaced(kLab, "2.00USD/h", "2EUR/h")), testing::HasSubstr("USD/h"));
}

}  // namespace
}  // namespace ganymede::platforms
