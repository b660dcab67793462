#include <gtest/gtest.h>

#include "kernel/utilization.hpp"

namespace ganymede::kernel {
namespace {

TEST(GpuMeter, ReadsWhatTheLibrarySays) {
  const auto meter = GpuMeter::open("0000:01:00.0", GANYMEDE_FAKE_NVML);
  ASSERT_NE(meter, nullptr);
  const auto sample = meter->sample();
  ASSERT_TRUE(sample.has_value());
  EXPECT_EQ(sample->busy, 0.42);
  EXPECT_EQ(sample->memory_bytes, 600);
}

TEST(GpuMeter, IsNotThereWithoutLibraryOrGpu) {
  EXPECT_EQ(GpuMeter::open("0000:02:00.0", GANYMEDE_FAKE_NVML), nullptr);
  EXPECT_EQ(GpuMeter::open("0000:01:00.0", "libnowhere.so.9"), nullptr);
  EXPECT_EQ(GpuMeter::open("", GANYMEDE_FAKE_NVML), nullptr);
}

TEST(UtilizationSampler, SamplesTheGpuBesideTheProcess) {
  UtilizationSampler sampler(10, GpuMeter::open("0000:01:00.0", GANYMEDE_FAKE_NVML));
  const traces::TraceUtilization all = sampler.finish();
  EXPECT_EQ(all.samples.at("gpu"), std::vector<double>{0.42});
  EXPECT_EQ(all.samples.at("gpu_memory_bytes"), std::vector<double>{600});
  EXPECT_EQ(all.samples.at("cpu").size(), 1U);
  EXPECT_FALSE(UtilizationSampler(10).finish().samples.contains("gpu"));
}

}  // namespace
}  // namespace ganymede::kernel
