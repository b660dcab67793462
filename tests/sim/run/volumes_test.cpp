// Volumes as providers sell them: by the GiB, with limits, with speeds that depend on the size, one for each node.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/errors.hpp"
#include "scenario_files.hpp"
#include "support/errors.hpp"

namespace ganymede::sim {
namespace {

using testing::AllOf;
using testing::HasSubstr;
/// A class of volumes like AWS's gp3 in eu-west-1: see platforms/catalog/aws.json.
Json general_purpose() {
  return {{"read", "125MiB/s"},
          {"write", "125MiB/s"},
          {"iops", 3000},
          {"each_node", true},
          {"minimum", "1GiB"},
          {"maximum", "16TiB"},
          {"limits",
           {{"iops", 16000}, {"iops_per_gib", 500}, {"throughput", "1000MiB/s"}, {"throughput_per_iops", "0.25MiB/s"}}},
          {"per_gib_month", "0.088USD"},
          {"per_iops_month", "0.0055USD"},
          {"per_mibps_month", "0.044USD"}};
}

/// One node of "one" for ten hours, its boot of 90 s included.
class Volumes : public testing::Test {
 protected:
  Json platform = Json::parse(made_up_platform());
  Json scenario = ScenarioFiles::with("/platform/nodes", 1);

  Volumes() {
    platform["storage"]["gp"] = general_purpose();
    scenario["workload"]["steps"] = 3'600'000 - 9'000;
    scenario["workload"]["dataset"]["bytes_per_image"] = 0;  // reading takes no time
  }
  Scenario load() const {
    files_.folder().add("lab.json", platform.dump());
    return files_.load(scenario);
  }
  Json run() const { return simulate_json(load()); }
  std::string error() const {
    return message_of<ConfigError>([&] { load(); });
  }
  /// The item of that name.
  static Json item(const Json& result, const char* name) {
    for (const Json& line : result["cost"]["items"])
      if (line["item"] == name) return line;
    return nullptr;
  }

 private:
  ScenarioFiles files_;
};

// 500 GiB x 0.088 USD x 10 h / 730 h = 0.602740 USD; for a GB-month the same volume is 536.870912 GB.
TEST_F(Volumes, AreChargedInTheUnitOfTheirPrice) {
  scenario["storage"]["dataset"] = {{"class", "gp"}, {"size", "500GiB"}};
  Json storage = item(run(), "storage");
  EXPECT_EQ(storage["usd"], "0.60274");
  EXPECT_EQ(storage["unit"], "GiB-month");
  EXPECT_NEAR(storage["quantity"].get<double>(), 500.0 * 10 / 730, 1e-9);

  platform["storage"]["gp"].erase("per_gib_month");
  platform["storage"]["gp"]["per_gb_month"] = "0.088USD";
  storage = item(run(), "storage");
  EXPECT_EQ(storage["usd"], "0.647187");  // 536.870912 x 0.088 x 10 / 730
  EXPECT_EQ(storage["unit"], "GB-month");
}

// 10 GB are 9.31 GiB, so ten are sold. Without a size, the volume has that of the dataset: 60,000 images of 100 kB are
// 6 GB.
TEST_F(Volumes, AreSoldInWholeGib) {
  scenario["storage"]["dataset"] = {{"class", "gp"}, {"size", "10GB"}};
  EXPECT_NEAR(item(run(), "storage")["quantity"].get<double>(), 10.0 * 10 / 730, 1e-9);
  scenario["workload"]["dataset"]["bytes_per_image"] = 100'000;
  scenario["storage"]["dataset"] = "gp";
  EXPECT_EQ(load().input.volume.size.si, 6 * 1073741824.0);  // 5.59 GiB
}

// 10 h are 10/730 of a month: 3,000 IOPS at 0.0055 and 375 MiB/s at 0.044 USD above what comes with the volume.
TEST_F(Volumes, ChargeWhatIsProvisionedBesides) {
  scenario["storage"]["dataset"] = {{"class", "gp"}, {"size", "500GiB"}, {"iops", 6000}, {"throughput", "500MiB/s"}};
  const Json result = run();
  EXPECT_EQ(item(result, "provisioned IOPS")["usd"], "0.226027");
  EXPECT_EQ(item(result, "provisioned throughput")["usd"], "0.226027");
  EXPECT_EQ(item(result, "provisioned throughput")["unit"], "MiB/s-month");
}

TEST_F(Volumes, ThatNobodySellsAreRefused) {
  const auto refused = [&](const Json& wanted) {
    scenario["storage"]["dataset"] = wanted;
    scenario["storage"]["dataset"]["class"] = "gp";
    return error();
  };
  EXPECT_THAT(
      refused({{"size", "1GB"}, {"iops", 16000}}),
      HasSubstr("/storage/dataset/iops: found 16000, expected at most 3000: gp is sold with at most 500 IOPS for "
                "each GiB, and this volume has 1 GiB"));
  EXPECT_THAT(refused({{"size", "20GiB"}, {"iops", 10001}}), HasSubstr("expected at most 10000"));
  EXPECT_THAT(refused({{"size", "1TiB"}, {"iops", 500000}}),
              HasSubstr("/storage/dataset/iops: found 500000, expected at most 16000"));
  EXPECT_THAT(refused({{"size", "1TiB"}, {"iops", 16000}, {"throughput", "10GB/s"}}),
              HasSubstr("/storage/dataset/throughput: found \"10GB/s\", expected at most"));
  // 3,000 IOPS x 0.25 MiB/s are 750 MiB/s.
  EXPECT_THAT(refused({{"size", "1TiB"}, {"throughput", "751MiB/s"}}),
              AllOf(HasSubstr("/storage/dataset/throughput"), HasSubstr("this volume has 3000")));
  EXPECT_THAT(refused({{"size", "17TiB"}}), HasSubstr("gp is sold up to 16384 GiB"));
  scenario["storage"]["dataset"] = {{"class", "gp"}, {"size", "32GiB"}, {"iops", 16000}, {"throughput", "1000MiB/s"}};
  EXPECT_EQ(load().input.storage->iops, 16000);
}

TEST_F(Volumes, OfAnUnknownSizeAreRefused) {
  scenario["storage"]["dataset"] = "gp";
  EXPECT_THAT(error(), AllOf(HasSubstr("/storage/dataset: found \"gp\", expected a size, as in {\"class\": \"gp\", "),
                             HasSubstr("\"bytes_per_image\" is not stated")));
  scenario["storage"]["dataset"] = "disk";  // nothing about it depends on its size
  EXPECT_EQ(load().input.volume.size.si, 0);
  scenario["workload"]["dataset"]["bytes_per_image"] = 100'000;
  scenario["storage"]["dataset"] = {{"class", "gp"}, {"size", "5GiB"}};  // for 6 GB
  EXPECT_THAT(error(), HasSubstr("/storage/dataset/size: found \"5GiB\", expected at least "));
  // A volume for checkpoints that are never written costs nothing.
  scenario["storage"] = {{"checkpoint", "gp"}};
  EXPECT_EQ(item(run(), "storage"), nullptr);
  scenario["checkpoint"] = {{"every", "1h"}, {"bytes", "0B"}};
  EXPECT_THAT(error(), HasSubstr("/storage/checkpoint: found \"gp\", expected a size"));
}

// 6 IOPS and 0.28 MiB/s for each GiB, at least 100, at most 800 IOPS.
TEST_F(Volumes, AreAsFastAsTheyAreLarge) {
  platform["storage"]["gp"] = {
      {"read", "100MiB/s"},
      {"write", "50MiB/s"},
      {"iops", 800},
      {"by_size", {{"iops_per_gib", 6}, {"least_iops", 100}, {"throughput_per_gib", "0.28MiB/s"}}},
      {"per_gib_month", "0.10USD"}};
  const auto with = [&](const char* size) {
    scenario["storage"]["dataset"] = {{"class", "gp"}, {"size", size}};
    return *load().input.storage;
  };
  EXPECT_DOUBLE_EQ(with("10GiB").read.si, 2.8 * 1048576);
  EXPECT_EQ(with("10GiB").iops, 100);
  EXPECT_DOUBLE_EQ(with("100GiB").write.si, 28.0 * 1048576);
  EXPECT_EQ(with("100GiB").iops, 600);
  EXPECT_DOUBLE_EQ(with("200GiB").write.si, 50.0 * 1048576);
  EXPECT_EQ(with("200GiB").iops, 800);
  EXPECT_DOUBLE_EQ(with("1TiB").read.si, 100.0 * 1048576);
}

// A volume with only provisioned IOPS moves 256 KiB with each: 100 IOPS give 25 MiB/s, and 64,000 IOPS give the 1,000
// MiB/s that are the volume's limit.
TEST_F(Volumes, AreAsFastAsTheirProvisionedIops) {
  platform["storage"]["io"] = {{"read", "1000MiB/s"},
                               {"write", "1000MiB/s"},
                               {"provisioned", true},
                               {"each_node", true},
                               {"per_gib_month", "0.1USD"},
                               {"per_iops_month", "0.06USD"},
                               {"source", "made up"},
                               {"unconfirmed", "its speed"},
                               {"limits", {{"iops", 64'000}, {"throughput_per_iops", "256KiB/s"}}}};
  scenario["storage"]["dataset"] = {{"class", "io"}, {"size", "500GiB"}, {"iops", 100}};
  EXPECT_EQ(load().input.storage->read.si, 100 * 262144.0);
  EXPECT_EQ(load().input.storage->write.si, 100 * 262144.0);
  EXPECT_THAT(run()["provenance"]["warnings"].dump(), HasSubstr("unconfirmed: io: its speed"));
  scenario["storage"]["dataset"]["iops"] = 64'000;
  EXPECT_EQ(load().input.storage->read.si, 1000 * 1048576.0);
}

// A batch of 64 images of 784 B takes 50.176 ms at 1 MB/s, which is then the step. Two nodes that share that rate take
// twice as long. Two nodes with a disk each do not, but both disks are paid for.
TEST_F(Volumes, ServeOneNodeEach) {
  platform["storage"]["gp"] = {{"read", "1MB/s"}, {"write", "1MB/s"}, {"per_gib_month", "0.73USD"}};
  scenario["workload"]["steps"] = 1000;
  scenario["workload"]["dataset"]["bytes_per_image"] = 784;
  scenario["storage"] = {{"dataset", {{"class", "gp"}, {"size", "100GiB"}}}, {"cache", "none"}};
  scenario["platform"]["nodes"] = 2;
  const auto step = [](const Json& result) { return result["time"]["step_mean_s"].get<double>(); };
  const double batch_s = 64 * 784 / 1e6;
  const Json shared = run();
  EXPECT_NEAR(step(shared), 2 * batch_s, 0.01 * batch_s);
  platform["storage"]["gp"]["each_node"] = true;
  const Json own = run();
  EXPECT_NEAR(step(own), batch_s, 0.01 * batch_s);
  const auto hours = [](const Json& result) { return result["time"]["total_s"].get<double>() / 3600; };
  EXPECT_NEAR(item(shared, "storage")["quantity"].get<double>(), 100 * hours(shared) / 730, 1e-9);
  EXPECT_NEAR(item(own, "storage")["quantity"].get<double>(), 2 * 100 * hours(own) / 730, 1e-9);

  // Two GPUs of one node share its disk.
  scenario["platform"]["nodes"] = 1;
  scenario["platform"]["instance"] = "four";
  scenario["platform"]["gpus_per_node"] = 2;
  EXPECT_NEAR(step(run()), 2 * batch_s, 0.01 * batch_s);
}

// There is one object store, which gives each node the full rate. The limit of requests is that of one prefix, which
// all nodes share.
TEST_F(Volumes, AnObjectStoreServesEachNodeAtItsRate) {
  platform["storage"]["store"] = {
      {"kind", "object"}, {"read", "1MB/s"}, {"write", "1MB/s"}, {"per_gib_month", "0.73USD"}};
  scenario["workload"]["steps"] = 1000;
  scenario["workload"]["dataset"]["bytes_per_image"] = 784;
  scenario["storage"] = {{"dataset", "store"}, {"cache", "none"}};
  const double batch_s = 64 * 784 / 1e6;
  for (const int nodes : {1, 2}) {
    scenario["platform"]["nodes"] = nodes;
    const Json result = run();
    EXPECT_NEAR(result["time"]["step_mean_s"].get<double>(), batch_s, 0.01 * batch_s) << nodes;
    EXPECT_NEAR(item(result, "storage")["quantity"].get<double>(),
                60000.0 * 784 / 1073741824 * result["time"]["total_s"].get<double>() / 3600 / 730, 1e-12);
  }
  platform["storage"]["store"]["iops"] = 640;  // ten batches a second, of both nodes together
  EXPECT_NEAR(run()["time"]["step_mean_s"].get<double>(), 2 * 64 / 640.0, 0.01 * 0.2);
}

}  // namespace
}  // namespace ganymede::sim
