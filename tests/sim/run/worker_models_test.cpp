// What a node adds to the steps of its workers: decoding by its processors, and boards that two GPUs share.

#include <gtest/gtest.h>

#include "scenario_files.hpp"
#include "sim/scenario/storage.hpp"

namespace ganymede::sim {
namespace {
Json decoding(const char* instance, int nodes, double pixels) {
  Json content = ScenarioFiles::with("/workload/dataset/pixels", pixels);
  content["platform"]["instance"] = instance;
  content["platform"]["nodes"] = nodes;
  content["storage"] = {{"decoder", "pillow"}};
  return content;
}

// 64 images for each GPU, on 8 vCPUs for each GPU.
TEST(Decoding, IsSharedByAllProcessorsOfANode) {
  const ScenarioFiles files;
  const double each_s = find_decoder("pillow")->time(1e6).si;
  EXPECT_DOUBLE_EQ(each_s, (0.17e-3 + 11.6e-3) / 0.6);
  const Json one = simulate_json(files.load(decoding("one", 1, 1e6)));
  EXPECT_NEAR(number(one, "/time/step_mean_s"), 64 * each_s / 8, 1e-6);
  EXPECT_GT(number(one, "/gpu_seconds/input_stall"), 0);
  // All processors decode all the time, but not while the node boots.
  const double training_s = 1000 * 64 * each_s / 8;
  EXPECT_NEAR(number(one, "/utilization/cpu"), training_s / (training_s + kBoot), 0.01);
  const Json four = simulate_json(files.load(decoding("four", 1, 1e6)));
  EXPECT_NEAR(number(four, "/time/step_mean_s"), 4 * 64 * each_s / 32, 1e-3);
}

TEST(Decoding, OfSmallImagesHidesBehindTheStep) {
  const ScenarioFiles files;
  const Json small = simulate_json(files.load(decoding("one", 1, 1000)));
  EXPECT_NEAR(number(small, "/time/step_mean_s"), 10e-3, 1e-5);
}

TEST(Decoding, RatesOfPipelinesAreThoseOfTheirSources) {
  EXPECT_NEAR(find_decoder("tf-data")->rate(400 * 350, 80), 11'000, 1e-6);
  EXPECT_NEAR(find_decoder("opencv-processes")->rate(400 * 350, 80), 5'600, 1e-6);
  EXPECT_EQ(find_decoder("none"), nullptr);
}

// The device works for 9 ms of a step's 10 ms; at nine tenths of its speed they take 10 ms.
TEST(Boards, AreSharedByTheGpusOfANode) {
  const ScenarioFiles files;
  Json lab = Json::parse(made_up_platform());
  lab["gpus"]["GPU-X"]["board_slowdown"] = 0.1;
  files.folder().add("lab.json", lab.dump());
  const auto compute_s = [&](int gpus) {
    Json content = ScenarioFiles::with("/platform/instance", "four");
    content["platform"]["nodes"] = 1;
    content["platform"]["gpus_per_node"] = gpus;
    content["synchronization"] = {{"scheme", "ring"}, {"overlap", false}};
    return number(simulate_json(files.load(content)), "/gpu_seconds/compute") / gpus / 1000;
  };
  EXPECT_NEAR(compute_s(1), 10e-3, 1e-6);
  EXPECT_NEAR(compute_s(2), 11e-3, 1e-5);
}

}  // namespace
}  // namespace ganymede::sim
