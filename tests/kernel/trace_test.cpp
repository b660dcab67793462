#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "host_device.hpp"
#include "kernel/ops/eigen/eigen_ops.hpp"
#include "kernel/step_clock.hpp"
#include "scratch.hpp"

namespace ganymede::kernel {
namespace {

class TraceTest : public testing::Test {
 protected:
  TraceTest() {
    TrainOptions options = small_training(scratch_, 100);
    options.trace = true;
    Trainer trainer(options);
    result_ = trainer.run(12);
    trace_ = trainer.trace(2);
    flops_per_step_ = trainer.gan().step_flops_per_image() * options.batch;
  }

  const traces::TraceBatch& batch() const { return trace_.batches.front(); }

  Scratch scratch_;
  RunResult result_;
  traces::StepTrace trace_;
  double flops_per_step_ = 0;
};

TEST_F(TraceTest, PassesTheReadersChecks) {
  const traces::StepTrace read =
      traces::load_step_trace(scratch_.write("trace.json", traces::write_step_trace(trace_)));
  EXPECT_EQ(traces::write_step_trace(read), traces::write_step_trace(trace_));
  EXPECT_EQ(read.model, "mlp-gan");
  EXPECT_EQ(read.software.backend, "eigen");
  EXPECT_EQ(read.device.kind, "cpu");
  EXPECT_EQ(read.device.threads, 2);
  EXPECT_GT(read.device.fp32.si, 0);
  EXPECT_GT(read.device.memory_bandwidth.si, 0);
  EXPECT_GT(read.device.memory.si, 0);
}

TEST_F(TraceTest, WallTimesAreTheLoops) {
  EXPECT_EQ(batch().warmup_steps_dropped, 2);
  ASSERT_EQ(batch().wall_s.size(), 10U);
  EXPECT_LE(std::accumulate(batch().wall_s.begin(), batch().wall_s.end(), 0.0), result_.seconds);
}

TEST_F(TraceTest, PhasesTileTheStep) {
  ASSERT_EQ(batch().phases.size(), phases_of(StepKind::adversarial, false).size());
  for (std::size_t step = 0; step < batch().wall_s.size(); ++step) {
    double at = batch().phases.front().start_s[step];
    for (const auto& phase : batch().phases) {
      EXPECT_NEAR(phase.start_s[step], at, 1e-9) << phase.name;
      EXPECT_LE(phase.host_s[step], phase.seconds[step]);
      at += phase.seconds[step];
    }
    EXPECT_LE(at, batch().wall_s[step] + 1e-9);
  }
}

TEST_F(TraceTest, WorkAddsUpToTheStep) {
  double flops = 0;
  for (const auto& phase : batch().phases) {
    flops += phase.flops;
    EXPECT_EQ(phase.launches > 0, phase.name != "load") << phase.name;
  }
  EXPECT_EQ(flops, flops_per_step_);
  const auto& generator = trace_.networks.at("generator");
  const auto& discriminator = trace_.networks.at("discriminator");
  EXPECT_EQ((generator.flops_per_image + discriminator.flops_per_image) * batch().batch, flops_per_step_);
  EXPECT_EQ(generator.parameters, 2'051'384);
  EXPECT_EQ(discriminator.gradient_bytes, 935'940);
}

TEST_F(TraceTest, BucketsHoldEveryGradientOnceInTheOrderOfTheirReadiness) {
  std::map<std::string, std::int64_t> bytes;
  std::map<std::string, double> last;
  for (const auto& bucket : batch().buckets) {
    bytes[bucket.network] += bucket.bytes;
    EXPECT_GT(bucket.ready_fraction, last[bucket.network]);
    EXPECT_LE(bucket.ready_fraction, 1);
    last[bucket.network] = bucket.ready_fraction;
  }
  EXPECT_EQ(bytes["generator"], trace_.networks.at("generator").gradient_bytes);
  EXPECT_EQ(bytes["discriminator"], trace_.networks.at("discriminator").gradient_bytes);
}

TEST_F(TraceTest, MemoryIsByKindAndUtilizationSampled) {
  for (const char* kind : {"parameters", "gradients", "optimizer", "activations", "workspace", "data"})
    EXPECT_GT(batch().memory_bytes.at(kind), 0) << kind;
  EXPECT_EQ(batch().memory_bytes.at("optimizer"), 2 * batch().memory_bytes.at("parameters"));
  ASSERT_TRUE(batch().utilization);
  EXPECT_FALSE(batch().utilization->samples.at("cpu").empty());
}

TEST(StepClock, EachDiscriminatorUpdateHasPhasesAndBucketsOfItsOwn) {
  const Scratch scratch;
  TrainOptions options = small_training(scratch, 100);
  options.trace = true;
  options.discriminator_steps = 2;
  Trainer trainer(options);
  trainer.run(6);
  const traces::StepTrace trace = trainer.trace(1);
  const traces::TraceBatch& batch = trace.batches.front();
  std::vector<std::string> names;
  double flops = 0;
  for (const auto& phase : batch.phases) {
    names.push_back(phase.name);
    EXPECT_EQ(phase.seconds.size(), 5U) << phase.name;
    flops += phase.flops;
  }
  EXPECT_EQ(names.size(), phases_of(StepKind::adversarial, false).size() + 8);
  EXPECT_EQ(names[7], "discriminator.update");
  EXPECT_EQ(names[8], "load.2");
  EXPECT_EQ(names[15], "discriminator.update.2");
  EXPECT_EQ(names[16], "generator.forward_through_discriminator");
  EXPECT_EQ(flops, trainer.gan().step_flops_per_image(2) * options.batch);
  std::map<std::string, std::int64_t> bytes;
  for (const auto& bucket : batch.buckets) bytes[bucket.before_phase] += bucket.bytes;
  EXPECT_EQ(bytes["discriminator.update"], 935'940);
  EXPECT_EQ(bytes["discriminator.update.2"], 935'940);
  EXPECT_EQ(bytes[""], 8'205'536);  // the generator's, of which there is one update
  // The reader accepts the written trace, and nothing is lost.
  const traces::StepTrace read = traces::load_step_trace(scratch.write("trace.json", traces::write_step_trace(trace)));
  EXPECT_EQ(traces::write_step_trace(read), traces::write_step_trace(trace));
}

TEST(StepClock, TracingDoesNotChangeTheTraining) {
  const Scratch scratch;
  TrainOptions options = small_training(scratch, 100);
  Trainer plain(options);
  options.trace = true;
  Trainer traced(options);
  EXPECT_EQ(plain.run(4).losses.generator, traced.run(4).losses.generator);
}

// A step with the lazy phase has the gradients after it, the trace after the phase that the other steps end with.
void expect_ready_at_the_end_of_the_usual_phase(Backend& backend) {
  StepClock clock;
  clock.record(*backend.ops, 1, 1, 1, false);
  clock.begin_step();
  for (const auto& [usual, lazy] :
       {std::pair{Phase::discriminator_backward_fake, Phase::discriminator_gradient_penalty},
        std::pair{Phase::generator_backward, Phase::generator_path_length}}) {
    clock.begin_phase(usual);
    clock.begin_phase(lazy);
    usual == Phase::generator_backward ? clock.generator_layer_done(0) : clock.discriminator_layer_done(0);
  }
  clock.begin_phase(Phase::generator_update);
  clock.end_step();
  clock.step_done();
  EXPECT_EQ(clock.generator_ready_s()[0], clock.times(Phase::generator_backward).seconds[0]);
  EXPECT_EQ(clock.discriminator_ready_s()[0], clock.times(Phase::discriminator_backward_fake).seconds[0]);
}

TEST(StepClock, GradientsOfALazyPhaseAreReadyAtTheEndOfTheUsualOne) {
  expect_ready_at_the_end_of_the_usual_phase(*make_eigen_backend(1));
  expect_ready_at_the_end_of_the_usual_phase(*make_hosted_cuda_backend({.graph = false}));
}

TEST(Buckets, CloseBeforeTheCapAndReportTheirLastLayer) {
  Layers layers;
  layers.push_back(dense("a", 10, 10));       // 440 bytes
  layers.push_back(dense("b", 10, 150'000));  // 6.6 MB: alone
  layers.push_back(sigmoid("c", 150'000));    // nothing
  const Network network("n", std::move(layers));
  const auto buckets = make_buckets(network, {0.9, 0.5, 0.1}, 1.0, Phase::generator_backward);
  ASSERT_EQ(buckets.size(), 2U);
  EXPECT_EQ(buckets[0].bytes, 4 * (10 * 150'000 + 150'000));
  EXPECT_EQ(buckets[0].ready_fraction, 0.5);
  EXPECT_EQ(buckets[1].bytes, 4 * (10 * 10 + 10));
  EXPECT_EQ(buckets[1].ready_fraction, 0.9);
  EXPECT_EQ(buckets[1].after_phase, "generator.backward");
}

}  // namespace
}  // namespace ganymede::kernel
