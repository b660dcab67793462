// Measured values laid over a catalog.

#include "platforms/overlay.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

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

// Between sizes the shape of the links takes a share that grows with the gap, most of it where the machine was known,
// and all of it where it predicts sizes that are left out twice as well as straight lines.
TEST(Overlay, HoldsTheMeasuredCurve) {
  const auto curve_of = [](const std::string& rows, const std::string& more = "") {
    return load_overlaid("aws", ".",
                         JsonNode::parse(R"({"schema": "ganymede.overlay/1", "platform": {}, "fit": {
                           "instance": "p4d.24xlarge", "nodes": 2, "gpus_per_node": 8, "collective": "all-reduce",
                           "scheme": "nccl", )" +
                                             more + R"("rows": [)" + rows + "]}}",
                                         "overlay.json"))
        .measured;
  };
  const auto row = [](double bytes, double measured, double links) {
    return R"({"bytes": )" + std::to_string(bytes) + R"(, "measured_s": )" + std::to_string(measured) +
           R"(, "links_s": )" + std::to_string(links) + "}";
  };
  const auto curve = curve_of(row(1, 1, 1) + "," + row(2, 3, 1) + "," + row(4, 4, 2));
  ASSERT_TRUE(curve);
  EXPECT_EQ(curve->time(2, Seconds{9}), Seconds{3});
  EXPECT_NEAR(curve->time(3, Seconds{1.5}).si, 3.5, 1e-12);
  EXPECT_NEAR(curve->time(8, Seconds{9}).si, 18, 1e-12);
  EXPECT_NEAR(curve->time(0.5, Seconds{9}).si, 9, 1e-12);
  // At 32 a straight line gives 32, links that have 64 there 1 + 63 / 511 of the 1023 between the ends.
  const double shaped = 1 + 63.0 / 511 * 1023;
  const std::string ends = row(1, 1, 1) + "," + row(1024, 1024, 512);
  for (const auto& [off, share] :
       {std::pair("", 0.2), {R"("stated_off": 0.9, )", 0.2}, {R"("stated_off": 0.7, )", 0.8}})
    EXPECT_NEAR(curve_of(ends, off)->time(32, Seconds{64}).si, std::pow(32, 1 - share) * std::pow(shaped, share), 1e-6);
  // A gap of a factor of 4 is one doubling above 2.
  EXPECT_NEAR(curve_of(row(1, 2, 1) + "," + row(4, 8, 4), R"("stated_off": 0, )")->time(2, Seconds{3}).si,
              std::pow(4, 7.0 / 8) * std::pow(6, 1.0 / 8), 1e-6);
  // Links that fold between near sizes, as where NCCL changes its protocol, are followed by their ratio: a line has 2.5
  // at 1.5, and the ratio goes from 0.5 to 0.6.
  const double ratio = 0.5 * std::pow(1.2, std::log(1.5) / std::log(2));
  EXPECT_NEAR(curve_of(row(1, 2, 4) + "," + row(2, 3, 5), R"("stated_off": 0, )")->time(1.5, Seconds{6}).si,
              std::pow(2.5, 0.2) * std::pow(6 * ratio, 0.8), 1e-6);
  // Links that hardly differ at both ends do not blow up what is between them.
  const std::string flat = row(1, 2, 4) + "," + R"({"bytes": 2, "measured_s": 3, "links_s": 4.000000000000001})";
  for (const double links : {3.9, 4.0, 4.1}) {
    EXPECT_GT(curve_of(flat, R"("stated_off": 0, )")->time(1.5, Seconds{links}).si, 2) << links;
    EXPECT_LT(curve_of(flat, R"("stated_off": 0, )")->time(1.5, Seconds{links}).si, 3) << links;
  }
  // A distance that is none tells nothing.
  for (const char* off : {R"("stated_off": "x", )", R"("stated_off": -5, )"})
    EXPECT_EQ(curve_of(ends, off)->time(32, Seconds{64}), curve_of(ends)->time(32, Seconds{64})) << off;
  // Links that predict what is left out twice as well as lines are followed wholly, though the machine was unknown.
  const std::string exact = row(1, 2, 1) + "," + row(2, 10, 5) + "," + row(4, 12, 6) + "," + row(8, 40, 20);
  EXPECT_NEAR(curve_of(exact)->time(6, Seconds{16}).si, 32, 1e-9);
  // Links that fall where times rise have no shape to give.
  EXPECT_NEAR(curve_of(row(1, 2, 4) + "," + row(1024, 1025, 3), R"("stated_off": 0, )")->time(512, Seconds{9}).si, 513,
              1e-6);
  EXPECT_FALSE(curve_of(row(1, 1, 1)));
  EXPECT_FALSE(curve_of(row(2, 1, 1) + "," + row(1, 1, 1)));
  EXPECT_FALSE(curve_of(row(1, 1, 0) + "," + row(2, 1, 1)));
}

}  // namespace
}  // namespace ganymede::platforms
