// Measured values laid over a catalog.

#include "platforms/overlay.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/errors.hpp"
#include "common/json.hpp"
#include "platforms/catalog.hpp"
#include "support/errors.hpp"
#include "support/temporary_folder.hpp"

namespace ganymede::platforms {
namespace {

using testing::AllOf;
using testing::HasSubstr;

JsonNode overlay_of(const std::string& platform) {
  return JsonNode::parse(R"({"schema": "ganymede.overlay/1", "source": "a test", "platform": )" + platform + "}",
                         "overlay.json");
}

TEST(Overlay, ChangesWhatItNamesAndNothingElse) {
  const Platform& plain = catalog("aws");
  const Platform changed =
      load_overlaid("aws", ".", overlay_of(R"({"instances": {"p4d.24xlarge": {"nic": {"latency": "123us"}}}})"));
  const Instance& before = plain.instance("p4d.24xlarge");
  const Instance& after = changed.instance("p4d.24xlarge");
  EXPECT_NE(before.nic->latency.si, 123e-6);
  EXPECT_DOUBLE_EQ(after.nic->latency.si, 123e-6);
  EXPECT_EQ(after.nic->bandwidth, before.nic->bandwidth);
  EXPECT_EQ(after.prices.size(), before.prices.size());
  EXPECT_EQ(changed.instance("p3.2xlarge").nic->latency, plain.instance("p3.2xlarge").nic->latency);
}

TEST(Overlay, LiesOverAPlatformFileToo) {
  const TemporaryFolder folder;
  folder.add("lab.json", R"({"schema": "ganymede.platform/1",
    "gpus": {"X": {"memory": "1GiB", "fp32": "1Tflop/s", "memory_bandwidth": "100GB/s"}},
    "instances": {"node": {"gpu": "X", "gpus": 1}}})");
  const Platform changed =
      load_overlaid("lab.json", folder.path(), overlay_of(R"({"gpus": {"X": {"launch": "3us"}}})"));
  EXPECT_DOUBLE_EQ(changed.gpus[0].launch.si, 3e-6);
}

TEST(Overlay, AMisspeltNameIsLocatedWithTheNearest) {
  EXPECT_THAT(message_of<ConfigError>(
                  [] { load_overlaid("aws", ".", overlay_of(R"({"instances": {"p4d.24xlagre": {"vcpus": 4}}})")); }),
              AllOf(HasSubstr("overlay.json: /platform/instances/p4d.24xlagre"), HasSubstr("\"p4d.24xlarge\"")));
}

TEST(Overlay, MistakesOfTheCombinationNameBothFiles) {
  EXPECT_THAT(message_of<ConfigError>([] {
                load_overlaid("aws", ".", overlay_of(R"({"instances": {"p4d.24xlarge": {"nic": {"latency": "12"}}}})"));
              }),
              AllOf(HasSubstr("aws.json with overlay.json: /instances/p4d.24xlarge/nic/latency"), HasSubstr("\"12\"")));
}

TEST(Overlay, AnotherSchemaOrAnUnknownKeyIsRefused) {
  EXPECT_THAT(message_of<ConfigError>([] { load_overlaid("aws", ".", JsonNode::parse("{}", "overlay.json")); }),
              HasSubstr("schema"));
  EXPECT_THAT(message_of<ConfigError>([] {
                load_overlaid("aws", ".",
                              JsonNode::parse(R"({"schema": "ganymede.overlay/1", "platfrom": {}})", "overlay.json"));
              }),
              HasSubstr("plat"));
}

TEST(Overlay, KnowsTheMessagesThatItsLinksWereFittedTo) {
  const auto overlay = [](const std::string& fit) {
    return JsonNode::parse(R"({"schema": "ganymede.overlay/1", "platform": {})" + fit + "}", "overlay.json");
  };
  const Platform fitted =
      load_overlaid("aws", ".", overlay(R"(, "fit": {"rows": [{"bytes": 65536}, {"bytes": 4096}, {"bytes": 1e8}]})"));
  ASSERT_TRUE(fitted.measured_sizes);
  EXPECT_EQ(fitted.measured_sizes->first, 4096);
  EXPECT_EQ(fitted.measured_sizes->second, 1e8);
  for (const char* unknown : {"", R"(, "fit": {})", R"(, "fit": {"rows": []})", R"(, "fit": "by eye")"})
    EXPECT_FALSE(load_overlaid("aws", ".", overlay(unknown)).measured_sizes) << unknown;
}

}  // namespace
}  // namespace ganymede::platforms
