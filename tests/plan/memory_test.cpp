// What a plan says where memory decides.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/json.hpp"
#include "plans.hpp"
#include "report/plans.hpp"
#include "sim/scenario/scenario.hpp"

namespace ganymede::plan {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// The memory that a plan leaves to a step of StyleGAN2's list of layers.
double planned_gb(const std::string& trace, int batch) {
  const Json content = {{"schema", "ganymede.request/1"},
                        {"workload", {{"trace", trace}, {"batch_per_gpu", batch}, {"images", 1000}}}};
  const Request of = read_request(JsonNode::wrap(content, "request.json", ""), kNow);
  return needed_memory(of, of.batches.front()).si / 1e9;
}

// Published peaks in GB (10^9 bytes): NVlabs/stylegan2 (1024 and 256 pixels), NVlabs/stylegan2-ada-pytorch (mixed
// precision), rosinality/stylegan2-pytorch issue 10 (batch 8).
TEST(PlannedMemory, OfAListOfLayersIsAboveEveryPublishedPeak) {
  struct Peak {
    const char* trace;
    int batch;
    double gb;
  };
  for (const auto& [trace, batch, gb] :
       {Peak{"layers:stylegan2", 4, 13.3}, Peak{"layers:stylegan2:fp16", 4, 8.6},
        Peak{"layers:stylegan2?image=256", 4, 6.4}, Peak{"layers:stylegan2?image=256", 8, 8.2}}) {
    EXPECT_GE(planned_gb(trace, batch), gb) << trace << " " << batch;
    EXPECT_LE(planned_gb(trace, batch), 1.5 * gb) << trace << " " << batch;
  }
}

TEST_F(Plans, SayWhatMemoryIsLeftToAListOfLayers) {
  content["workload"] = {{"trace", "layers:dcgan"}, {"batch_per_gpu", 8}, {"images", 100'000}};
  content["search"]["max_gpus"] = 1;
  content["search"]["markets"] = {"on-demand"};
  const Json plan = json();
  ASSERT_FALSE(plan["chosen"].is_null());
  EXPECT_THAT(
      plan["chosen"]["warnings"].dump(),
      HasSubstr("of GPU memory are left to a step of 8 images, 3 times what the list of layers of dcgan counts"));
  content["workload"] = {{"trace", "t.json"}, {"images", 100'000}};
  EXPECT_THAT(json()["chosen"]["warnings"].dump(), testing::Not(HasSubstr("list of layers")));
}

// The only GPU has 64 MiB, and a step needs 116 MB.
TEST_F(Plans, SayWhyNothingFits) {
  content["search"]["instances"] = {"small"};
  const Json plan = json();
  EXPECT_TRUE(plan["chosen"].is_null());
  EXPECT_THAT(report::plan_text(plan, 200, report::PlanDetail::answer),
              AllOf(HasSubstr("left out: 1 instance type, a step needs 110.6 MiB of GPU memory, of which theirs have "
                              "64 MiB: small"),
                    HasSubstr("Nothing that was searched can run it: 1 instance type, a step needs 110.6 MiB")));
}

}  // namespace
}  // namespace ganymede::plan
