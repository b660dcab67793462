// What a plan says where memory decides.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "common/json.hpp"
#include "plan/fits.hpp"
#include "plans.hpp"
#include "report/plans.hpp"
#include "traces/layer_list.hpp"
#include "traces/recorded.hpp"

namespace ganymede::plan {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// The GPU of a catalog by its name.
platforms::Gpu gpu_named(const char* name, double gib) {
  platforms::Gpu gpu;
  gpu.name = name;
  gpu.memory = Bytes{gib * (1 << 30)};
  return gpu;
}

/// The memory of a step of StyleGAN2's list of layers on a V100.
calibration::DeviceMemory planned(const std::string& trace, int batch) {
  const Json content = {{"schema", "ganymede.request/1"},
                        {"workload", {{"trace", trace}, {"batch_per_gpu", batch}, {"images", 1000}}}};
  const Request of = read_request(JsonNode::wrap(content, "request.json", ""), kNow);
  return needed_memory(of, of.batches.front(), gpu_named("V100", 32), of.max_gpus > 1);
}

// Published peaks in GiB: NVlabs/stylegan2 (1024 and 256 pixels), NVlabs/stylegan2-ada-pytorch (mixed precision),
// rosinality/stylegan2-pytorch issue 10 (batch 8).
TEST(PlannedMemory, OfAListOfLayersIsBelowItsUpperEndAtEveryPublishedPeak) {
  struct Peak {
    const char* trace;
    int batch;
    double gb;
  };
  for (const auto& [trace, batch, gb] :
       {Peak{"layers:stylegan2", 4, 13.3}, Peak{"layers:stylegan2:fp16", 4, 8.6},
        Peak{"layers:stylegan2?image=256", 4, 6.4}, Peak{"layers:stylegan2?image=256", 8, 8.2}}) {
    const calibration::DeviceMemory memory = planned(trace, batch);
    EXPECT_GE(memory.high, gb * (1 << 30)) << trace << " " << batch;
    EXPECT_LE(memory.high, 1.5 * gb * (1 << 30)) << trace << " " << batch;
    EXPECT_LT(memory.low, memory.expected);
    EXPECT_LT(memory.expected, memory.high);
  }
}

TEST_F(Plans, SayWhatMemoryIsLeftToAListOfLayers) {
  content["workload"] = {{"trace", "layers:dcgan"}, {"batch_per_gpu", 8}, {"images", 100'000}};
  content["search"]["max_gpus"] = 1;
  content["search"]["markets"] = {"on-demand"};
  const Json plan = json();
  ASSERT_FALSE(plan["chosen"].is_null());
  EXPECT_THAT(plan["chosen"]["warnings"].dump(), AllOf(HasSubstr("a step of 8 images takes "),
                                                       HasSubstr(" of GPU memory, counted from the layers of dcgan")));
  content["workload"] = {{"trace", "t.json"}, {"images", 100'000}};
  EXPECT_THAT(json()["chosen"]["warnings"].dump(), testing::Not(HasSubstr("list of layers")));
}

// The only GPU has 64 MiB, and a step needs 116 MB.
TEST_F(Plans, SayWhyNothingFits) {
  content["search"]["instances"] = {"small"};
  const Json plan = json();
  EXPECT_TRUE(plan["chosen"].is_null());
  EXPECT_THAT(report::plan_text(plan, 200, report::PlanDetail::answer),
              AllOf(HasSubstr("left out: 1 instance type, a step needs 110.6 MiB of GPU memory, of which a GPU-S has "
                              "64 MiB, for a batch of at most 32: small"),
                    HasSubstr("Nothing that was searched can run it: 1 instance type, a step needs 110.6 MiB")));
}

// 16 MB of weights, and 100 MB of activations for 64 images: (64 MiB - 16 MB) / (100 MB / 64) = 32.7 images. What our
// own kernel takes is exact, and nothing lies beside it.
TEST(Fits, OfOurOwnKernelIsExact) {
  const traces::StepTrace trace = constant_trace(40);
  const documents::Fits out = fits(trace, 33, {gpu_named("small", 0.0625), gpu_named("large", 16)}, true);
  ASSERT_EQ(out.gpus.size(), 2U);
  EXPECT_EQ(out.gpus[0].largest_batch, 32);
  EXPECT_EQ(out.gpus[0].perhaps_batch, 32);
  EXPECT_EQ(out.gpus[0].at_verdict, "no");
  EXPECT_EQ(out.gpus[1].at_verdict, "fits");
  EXPECT_DOUBLE_EQ(out.total.bytes, 16e6 + 33 * 100e6 / 64);
  EXPECT_EQ(out.total.interval.low, out.total.interval.high);
  EXPECT_EQ(out.kinds.size(), 2U);  // the host's data is not the GPU's
}

// Between two recorded batches memory is straight; a recorded peak of PyTorch gets what its allocator holds and the
// context beside it; a list of layers, on several GPUs, buckets as large as its gradients.
TEST(Fits, OfPyTorchHoldsWhatLiesBesideTheTensors) {
  traces::StepTrace trace = constant_trace(40);
  trace.software = {"PyTorch", "2.1", "cuda"};
  trace.batches.push_back(trace.batches.front());
  trace.batches.back().batch = 128;
  trace.batches.back().memory_bytes["activations"] = 300e6;
  const documents::Fits out = fits(trace, 96, {gpu_named("V100", 16)}, true);
  EXPECT_DOUBLE_EQ(out.allocated, 16e6 + 200e6);
  EXPECT_NEAR(out.total.bytes, 1.12 * 216e6 + 300 * 1048576.0, 1);
  EXPECT_NEAR(out.total.interval.high, 1.12 * std::exp(0.06) * 216e6 + 1008 * 1048576.0, 1);
  EXPECT_LT(out.gpus[0].largest_batch, out.gpus[0].perhaps_batch);

  const traces::LayerList list = traces::built_in_list("dcgan");
  trace = traces::trace_of(list, {8}, {"G", FlopsPerSecond{1e12}, BytesPerSecond{1e11}, Seconds{0}, Bytes{16e9}});
  const double more = fits(trace, 8, {gpu_named("V100", 16)}, true).allocated -
                      fits(trace, 8, {gpu_named("V100", 16)}, false).allocated;
  EXPECT_NEAR(more, trace.batches.front().memory_bytes.at("gradients"), 1);
}

TEST(Fits, OfCatalogsKnowTheirGpusAndModels) {
  const documents::Fits out = fits({.model = "stylegan2?image=256", .gpus = {"V100", "T4"}, .batch = 8});
  EXPECT_EQ(out.model, "stylegan2-256");
  ASSERT_FALSE(out.gpus.empty());
  for (const documents::FitsGpu& gpu : out.gpus) {
    EXPECT_THAT(gpu.gpu, testing::AnyOf(HasSubstr("V100"), HasSubstr("T4")));
    EXPECT_LE(gpu.largest_batch, gpu.perhaps_batch);
  }
  EXPECT_LT(fits({.model = "layers:stylegan2:fp16"}).total.bytes, fits({.model = "stylegan2"}).total.bytes);
  const auto refused = [](const FitsOptions& options) { return message_of<ConfigError>([&] { fits(options); }); };
  EXPECT_THAT(refused({.model = "stylegan3"}),
              AllOf(HasSubstr("fits: /model: "), HasSubstr("did you mean \"stylegan2\"?")));
  EXPECT_THAT(refused({.model = "dcgan", .gpus = {"V10"}}), HasSubstr("--gpu V10: no catalog has it"));
  EXPECT_THAT(refused({.model = "dcgan", .gpus = {"A100-90GB"}}), HasSubstr("--gpu A100-90GB: no catalog has it"));
  EXPECT_THAT(refused({.model = "dcgan", .gpus = {"H100-PCE"}}), HasSubstr("did you mean \"H100-PCIE\"?"));
  const documents::Fits own = fits({.model = "dcgan", .gpus = {"GTX 1080", "TITAN X"}});  // no catalog rents these
  ASSERT_EQ(own.gpus.size(), 2U);
  EXPECT_EQ(own.gpus[0].gpu, "GTX1080");
  EXPECT_EQ(own.gpus[0].memory, 8.0 * 1073741824);
  EXPECT_THAT(refused({.model = "recorded:dcgan-64-cpu", .precision = "fp16"}), HasSubstr("was recorded in fp32"));
}

}  // namespace
}  // namespace ganymede::plan
