// Times whole GAN steps, including the preparation of batches. Prints one line of JSON for each configuration.
//   kernel_step --batch 16,64,256 --threads 1,2
//   kernel_step --model dcgan-64 --batch 128 --backend cuda --precision bf16
//   kernel_step --model dcgan-64 --batch 16,64,256 --backend cuda --record dcgan-64.json

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <numeric>
#include <optional>
#include <thread>

#include "common/file.hpp"
#include "common/json_value.hpp"
#include "common/units.hpp"
#include "kernel/device_limits.hpp"
#include "kernel/ops/eigen/kernels.hpp"
#include "kernel/train.hpp"
#include "kernel/weights.hpp"

namespace {

using namespace ganymede;
using namespace ganymede::kernel;

constexpr int kWarmup = 5;

struct Arguments {
  std::vector<int> batches{64};
  std::vector<int> threads{1};
  double min_time = 3;
  bool trace = false;
  std::string trace_to, record;
  bool limits = false;
  int losses = 0;             // steps whose losses are printed
  std::string init, weights;  // files, read before these steps and written after them
  TrainOptions options;
  std::optional<traces::StepTrace> recorded;  // what --record has recorded so far
};

/// The quantile of sorted values at `share`, from 0 to 1; 0.5 gives the median.
double value_at(const std::vector<double>& sorted, double share) {
  const double last = static_cast<double>(sorted.size() - 1);
  return sorted[static_cast<std::size_t>(std::lround(share * last))];
}

std::vector<double> time_steps(Trainer& trainer, double min_time) {
  using Clock = std::chrono::steady_clock;
  constexpr std::size_t kMinSteps = 20;
  for (int i = 0; i < kWarmup; ++i) trainer.step();
  std::vector<double> seconds;
  const auto begin = Clock::now();
  while (seconds.size() < kMinSteps || std::chrono::duration<double>(Clock::now() - begin).count() < min_time) {
    const auto step_begin = Clock::now();
    trainer.step();
    seconds.push_back(std::chrono::duration<double>(Clock::now() - step_begin).count());
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds;
}

/// The measured peak rate of the vector units: multiply-adds on registers alone, on all threads at once.
FlopsPerSecond fma_peak(int threads) {
  const CpuKernels& kernels = *available_cpu_kernels().front();
  constexpr std::int64_t kRepeats = 20'000'000;
  constexpr int kAttempts = 5;  // other programs on the machine may slow some of the attempts
  double best = 0;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    std::vector<std::thread> workers;
    std::vector<double> flops(static_cast<std::size_t>(threads));
    const auto begin = std::chrono::steady_clock::now();
    for (double& done : flops) workers.emplace_back([&done, &kernels] { done = kernels.multiply_add(kRepeats); });
    for (auto& worker : workers) worker.join();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    best = std::max(best, std::accumulate(flops.begin(), flops.end(), 0.0) / seconds);
  }
  return Flops{best} / Seconds{1};
}

/// The limits of the device as JSON.
void print_limits(const TrainOptions& options) {
  const auto backend = make_backend(options);
  traces::TraceDevice device = measure_device(*backend);
  measure_details(*backend->ops, device);
  const OrderedJson line = {{"device", device.name},
                            {"precision", backend->info.precision},
                            {"products_gflops", device.fp32.si / 1e9},
                            {"copy_gb_per_s", device.memory_bandwidth.si / 1e9},
                            {"convolution_gflops", device.convolution->si / 1e9},
                            {"launch_us", device.launch->si * 1e6},
                            {"host_copy_gb_per_s", device.host_copy->si / 1e9},
                            {"memory_gb", device.memory.si / 1e9}};
  fmt::print("{}\n", line.dump());
}

/// Adds the trainer's steps to those of other batch sizes.
void add_record(Arguments& arguments, Trainer& trainer) {
  traces::StepTrace trace = trainer.trace(kWarmup);
  if (arguments.recorded) {
    arguments.recorded->batches.push_back(std::move(trace.batches.front()));
  } else {
    measure_details(trainer.ops(), trace.device);
    arguments.recorded = std::move(trace);
  }
  write_file(arguments.record, traces::write_step_trace(*arguments.recorded));
}

void measure(Arguments& arguments, int batch, int threads) {
  TrainOptions options = arguments.options;
  options.batch = batch;
  options.threads = threads;
  options.trace = arguments.trace || !arguments.trace_to.empty() || !arguments.record.empty();
  Trainer trainer(options);
  const auto seconds = time_steps(trainer, arguments.min_time);
  const double median = value_at(seconds, 0.5);
  const double flops = trainer.gan().step_flops_per_image(options.discriminator_steps) * batch / median;
  trainer.pause();  // or the limits would be measured in the last phase of the last step
  const traces::TraceDevice device = measure_device(trainer.backend());
  OrderedJson line = {{"model", options.model},
                      {"batch", batch},
                      {"threads", threads},
                      {"backend", trainer.backend().info.backend},
                      {"instructions", trainer.backend().info.instructions},
                      {"median_step_ms", median * 1e3},
                      {"p10", value_at(seconds, 0.1) * 1e3},
                      {"p90", value_at(seconds, 0.9) * 1e3},
                      {"steps", seconds.size()},
                      {"images_per_s", batch / median},
                      {"gflops", flops / 1e9},
                      {"share_of_product", flops / device.fp32.si}};
  if (device.kind == "cpu") line["share_of_fma_peak"] = flops / fma_peak(threads).si;
  if (!arguments.trace_to.empty())
    write_file(fmt::format("{}-{}-{}.json", arguments.trace_to, options.model, batch),
               traces::write_step_trace(trainer.trace(kWarmup)));
  if (!arguments.record.empty()) add_record(arguments, trainer);
  fmt::print("{}\n", line.dump());
  std::fflush(stdout);
}

/// The losses of some steps as `ganymede train --format json` prints them, for tools/check_against_pytorch.py.
void print_losses(const Arguments& arguments) {
  Trainer trainer(arguments.options);
  if (!arguments.init.empty()) read_weights(trainer.gan(), trainer.ops(), arguments.init);
  OrderedJson history = OrderedJson::array();
  for (int step = 1; step <= arguments.losses; ++step) {
    const Losses losses = trainer.step();
    history.push_back({{"step", step}, {"discriminator", losses.discriminator}, {"generator", losses.generator}});
  }
  if (!arguments.weights.empty()) write_file(arguments.weights, write_weights(trainer.gan(), trainer.ops()));
  fmt::print("{}\n", OrderedJson{{"history", history}}.dump());
}

void add_options_of_losses(CLI::App& app, Arguments& arguments) {
  app.add_option("--losses", arguments.losses, "print the losses of so many steps; the options below are for these");
  app.add_option("--init", arguments.init, "read the first weights from this file");
  app.add_option("--weights", arguments.weights, "write the last weights to this file");
  app.add_option("--dataset", arguments.options.dataset)->capture_default_str();
  app.add_option("--d-steps", arguments.options.discriminator_steps)->capture_default_str();
  app.add_option("--loss", arguments.options.loss);
  app.add_option("--seed", arguments.options.seed)->capture_default_str();
  app.add_option("--lr", arguments.options.learning_rate);
  app.add_option("--epsilon", arguments.options.epsilon);
  app.add_flag("--host-random", arguments.options.host_random, "draw a GPU's random numbers on the host");
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app("Time of a GAN step: median, 10th and 90th percentile, GFLOP/s of matrix work.");
  app.add_option("--model", arguments.options.model)->capture_default_str();
  app.add_option("--batch", arguments.batches)->delimiter(',')->capture_default_str();
  app.add_option("--threads", arguments.threads)->delimiter(',')->capture_default_str();
  app.add_option("--backend", arguments.options.backend, "cpu or cuda")->capture_default_str();
  app.add_option("--precision", arguments.options.precision, "on a GPU: fp32, tf32, bf16");
  app.add_flag("!--no-graph", arguments.options.graph, "launch a GPU's kernels one by one");
  app.add_flag("--time-algorithms", arguments.options.time_algorithms, "time a GPU's convolutions, take the fastest");
  app.add_option("--min-time", arguments.min_time, "seconds for each configuration")->capture_default_str();
  app.add_flag("--trace", arguments.trace, "record phases, to measure the cost of recording");
  app.add_option("--trace-to", arguments.trace_to, "record phases and write them to PREFIX-MODEL-BATCH.json");
  app.add_option("--record", arguments.record, "record phases at all batch sizes into one step trace");
  app.add_flag("--limits", arguments.limits, "measure the device's limits only");
  add_options_of_losses(app, arguments);
  CLI11_PARSE(app, argc, argv);
  try {
    if (arguments.losses > 0) {
      arguments.options.batch = arguments.batches.front();
      arguments.options.threads = arguments.threads.front();
      print_losses(arguments);
      return 0;
    }
    if (arguments.limits) {
      print_limits(arguments.options);
      return 0;
    }
    for (const int batch : arguments.batches)
      for (const int threads : arguments.threads) measure(arguments, batch, threads);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
  return 0;
}
