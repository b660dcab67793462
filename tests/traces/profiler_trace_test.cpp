#include "traces/profiler_trace.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <map>

#include "common/errors.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "common/units.hpp"
#include "support/errors.hpp"
#include "support/temporary_folder.hpp"

namespace ganymede::traces {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
/// A trace of `steps` steps of 10 ms, as Kineto writes it, times in microseconds. The host launches 1 ms ahead. On the
/// GPU: a copy of 0.2 ms, "forward" from 1 to 4 ms in two kernels with a gap of 0.5 ms, "backward" from 4 to 7 ms, an
/// all-reduce of 1,000,000 floats from 6 to 8 ms (one ms of it alone), "update" from 8 to 8.5 ms.
class Kineto {
 public:
  explicit Kineto(int steps = 5, bool collectives = true, bool annotations = true) {
    trace = {{"schemaVersion", 1},
             {"deviceProperties", {{{"id", 0}, {"name", "NVIDIA A100-SXM4-40GB"}}}},
             {"distributedInfo", {{"backend", "nccl"}, {"rank", 1}, {"world_size", 4}}},
             {"traceEvents", Json::array()}};
    events().push_back({{"ph", "M"}, {"name", "process_name"}, {"pid", "Spans"}, {"args", {{"name", "x"}}}});
    for (int i = 0; i < steps; ++i) step(i, 1e6 + 10'000.0 * i, collectives, annotations);
    // Work after the last step counts to none.
    kernel("late", 1e6 + 10'000.0 * steps + 5000, 100, 7, 1e6 + 10'000.0 * steps + 4000);
  }
  Json& events() { return trace["traceEvents"]; }

  void host(const std::string& category, const std::string& name, double start, double length,
            Json args = Json::object()) {
    events().push_back({{"ph", "X"},
                        {"cat", category},
                        {"name", name},
                        {"pid", 11},
                        {"tid", 11},
                        {"ts", start},
                        {"dur", length},
                        {"args", args}});
  }
  /// `launched` < 0: the launch is not in the trace.
  void kernel(const std::string& name, double start, double length, int stream, double launched,
              const Json& more = Json::object(), const std::string& category = "kernel") {
    const int correlation = ++correlations_;
    if (launched >= 0) host("cuda_runtime", "cudaLaunchKernel", launched, 5, {{"correlation", correlation}});
    Json args = {{"device", 0}, {"stream", stream}, {"correlation", correlation}};
    args.update(more);
    events().push_back({{"ph", "X"},
                        {"cat", category},
                        {"name", name},
                        {"pid", 0},
                        {"tid", stream},
                        {"ts", start},
                        {"dur", length},
                        {"args", args}});
  }

  Json trace;

 private:
  void step(int i, double at, bool collectives, bool annotations) {
    host("user_annotation", fmt::format("ProfilerStep#{}", i), at - 1000, 10'000);
    if (annotations) {
      host("user_annotation", "forward", at - 100, 2000);
      host("user_annotation", "inner", at, 500);  // nested: no phase of its own
      host("user_annotation", "backward", at + 2000, 3000);
      host("user_annotation", "nccl:all_reduce", at + 4500, 300);
      host("user_annotation", "update", at + 6000, 1000);
    }
    kernel("Memcpy HtoD (Pinned -> Device)", at, 200, 7, at - 900, {{"bytes", 786'432}}, "gpu_memcpy");
    kernel("conv", at + 1000, 1500, 7, at);
    kernel("relu", at + 3000, 1000, 7, at + 200);
    kernel("dgrad", at + 4000, 3000, 7, at + 2100);
    if (collectives)
      kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", at + 6000, 2000, 20,
             at + 4600,
             {{"Collective name", "allreduce"}, {"In msg nelems", 1'000'000}, {"dtype", "Float"}, {"Group size", 4}});
    kernel("adam", at + 8000, 500, 7, at + 6100);
  }
  int correlations_ = 0;
};

class Profiler : public testing::Test {
 protected:
  ProfilerEvents read(const std::string& text, const std::string& name = "rank1.json") const {
    return read_profiler_events(folder_.add(name, text));
  }
  ProfilerImport import(const Kineto& kineto) const { return import_profiler(read(kineto.trace.dump()), options); }

  TemporaryFolder folder_;
  ProfilerOptions options{
      64, "gan", {"A100-40GB", FlopsPerSecond{19.5e12}, BytesPerSecond{1.555e12}, Seconds{0}, Bytes{40e9}}, 0, {}};
};

TEST_F(Profiler, ReadsWhatMatters) {
  const ProfilerEvents events = read(Kineto().trace.dump());
  EXPECT_EQ(events.steps.size(), 5U);
  EXPECT_EQ(events.gpu.size(), 5U * 6 + 1);
  EXPECT_EQ(events.device, "NVIDIA A100-SXM4-40GB");
  EXPECT_EQ(events.rank, 1);
  EXPECT_EQ(events.ranks, 4);
  EXPECT_THAT(events.collectives, ElementsAre("allreduce"));
}

TEST_F(Profiler, BreaksAStepDownByHand) {
  const ProfilerImport result = import(Kineto());
  // The host ends the last step 9 ms after the GPU began it. On average the GPU begins a step 1 ms after the host.
  EXPECT_EQ(result.steps, 5U);
  EXPECT_NEAR(result.mean.step, 10e-3, 1e-9);
  EXPECT_NEAR(result.mean.compute, 6e-3, 1e-9);
  EXPECT_NEAR(result.mean.exposed, 1e-3, 1e-9);
  EXPECT_NEAR(result.mean.overlapped, 1e-3, 1e-9);
  EXPECT_NEAR(result.mean.copies, 0.2e-3, 1e-9);
  EXPECT_NEAR(result.mean.idle, 10e-3 - 6e-3 - 1e-3 - 0.2e-3, 1e-9);
  EXPECT_NEAR(result.mean.unattributed, 0, 1e-9);
}

// The exposed millisecond of the all-reduce is taken out: a step of 9 ms whose update starts at 7 ms.
TEST_F(Profiler, PhasesByHand) {
  const ProfilerImport result = import(Kineto());
  const TraceBatch& batch = result.trace.batches.front();
  EXPECT_EQ(batch.batch, 64);
  for (const double wall : batch.wall_s) EXPECT_NEAR(wall, 9e-3, 1e-9);
  ASSERT_EQ(batch.phases.size(), 4U);
  const auto is = [](const TracePhase& phase, const char* name, double start, double seconds) {
    EXPECT_EQ(phase.name, name);
    EXPECT_NEAR(phase.start_s[0], start, 1e-9) << name;
    EXPECT_NEAR(phase.seconds[0], seconds, 1e-9) << name;
  };
  is(batch.phases[0], "copy", 0, 0.2e-3);
  is(batch.phases[1], "forward", 1e-3, 3e-3);
  is(batch.phases[2], "backward", 4e-3, 3e-3);
  is(batch.phases[3], "update", 7e-3, 0.5e-3);
  EXPECT_EQ(batch.phases[0].bytes_read, 786'432);
  EXPECT_EQ(batch.phases[1].launches, 2);
  ASSERT_EQ(batch.buckets.size(), 1U);
  EXPECT_EQ(batch.buckets[0].bytes, 4'000'000);
  EXPECT_EQ(batch.buckets[0].after_phase, "backward");
  EXPECT_NEAR(batch.buckets[0].ready_fraction, 2.0 / 3, 1e-9);
  // The trace can be written and read again.
  const StepTrace again = read_step_trace(JsonNode::parse(write_step_trace(result.trace), "trace.json"));
  EXPECT_EQ(again.networks.at("model").gradient_bytes, 4'000'000);
}

/// Six steps of a host that needs 3 ms for each, and of a GPU that needs 10 ms: 5 ms forward, 5 ms backward, on stream
/// 7 without a gap. A copy on another stream runs as soon as it is launched. So does preprocessing, which is launched
/// between the two and for which the GPU needs 0.5 ms.
Kineto lagging() {
  Kineto out(0);
  for (int i = 0; i < 6; ++i) {
    const double host = 3000.0 * i, gpu = 1000 + 10'000.0 * i;
    out.host("user_annotation", fmt::format("ProfilerStep#{}", i), host, 3000);
    out.host("user_annotation", "forward", host + 400, 200);
    out.host("user_annotation", "preprocess", host + 700, 200);
    out.host("user_annotation", "backward", host + 1000, 500);
    out.kernel("Memcpy HtoD (Pinned -> Device)", host + 100, 200, 22, host + 50, {{"bytes", 786'432}}, "gpu_memcpy");
    out.kernel("conv", gpu, 5000, 7, host + 500);
    out.kernel("sort", host + 900, 500, 27, host + 800);
    out.kernel("dgrad", gpu + 5000, 5000, 7, host + 1100);
  }
  return out;
}

// A step was taken to begin with its first copy, which runs while the GPU still computes the steps before: they were
// counted twice, as steps of up to 45 ms.
TEST_F(Profiler, StepsOfAGpuThatLagsItsHostDoNotOverlap) {
  options.parameters = 1000;
  const ProfilerImport result = import(lagging());
  EXPECT_EQ(result.steps, 6U);
  const TraceBatch& batch = result.trace.batches.front();
  double sum = 0;
  for (const double wall : batch.wall_s) sum += wall;
  EXPECT_NEAR(sum, 60e-3, 1e-9);  // the span of the GPU's work
  EXPECT_NEAR(result.mean.step, 10e-3, 1e-9);
  EXPECT_NEAR(result.mean.compute, 10e-3, 1e-9);
  EXPECT_NEAR(result.mean.copies + result.mean.idle, 0, 1e-9);
  ASSERT_EQ(batch.phases.size(), 4U);  // in the order of their launches, whatever runs first on the GPU
  const auto is = [&](std::size_t phase, const char* name, double start, double seconds) {
    EXPECT_EQ(batch.phases[phase].name, name);
    for (std::size_t step = 0; step < 6; ++step) {
      EXPECT_NEAR(batch.phases[phase].start_s[step], start, 1e-9) << name;
      EXPECT_NEAR(batch.phases[phase].seconds[step], seconds, 1e-9) << name;
    }
  };
  is(1, "forward", 0, 5e-3);
  is(2, "preprocess", 5e-3, 0);  // costs nothing beside the other stream
  is(3, "backward", 5e-3, 5e-3);
}

// Launched before the profiler began, it counted to the step of the host in whose time it ran: that step was 0.9 ms
// longer and of other phases.
TEST_F(Profiler, WhatWasLaunchedBeforeTheTraceBelongsToNoStep) {
  Kineto kineto;
  kineto.kernel("earlier", 1e6 - 900, 800, 7, -1);
  const ProfilerImport result = import(kineto);
  EXPECT_EQ(result.steps, 5U);
  EXPECT_THAT(result.notes, testing::Not(testing::Contains(HasSubstr("left out"))));
  EXPECT_NEAR(result.mean.step, 10e-3, 1e-9);
}

TEST_F(Profiler, AKernelWithoutItsLaunchFollowsTheOneBeforeItOnItsStream) {
  Kineto kineto;
  for (int i = 0; i < 5; ++i)
    kineto.kernel("without", 1e6 + 10'000.0 * i + 9200, 100, 7, -1);  // in the host's next step
  const ProfilerImport result = import(kineto);
  EXPECT_THAT(result.notes, testing::Not(testing::Contains(HasSubstr("left out"))));
  EXPECT_EQ(result.trace.batches[0].phases.back().name, "update");
  EXPECT_EQ(result.trace.batches[0].phases.back().launches, 2);
}

// PyTorch 1.8 to 1.11 had no category for annotations.
TEST_F(Profiler, CategoriesOfOldVersionsAreTheSame) {
  Kineto old;
  const std::map<std::string, std::string> names = {
      {"kernel", "Kernel"}, {"gpu_memcpy", "Memcpy"}, {"cuda_runtime", "Runtime"}, {"user_annotation", "Operator"}};
  for (Json& event : old.events())
    if (event.contains("cat")) event["cat"] = names.at(event["cat"].get<std::string>());
  old.host("Operator", "aten::mul_", 1e6 + 7100, 50);
  old.host("Operator", "MulBackward0", 1e6 + 17'100, 50);
  EXPECT_EQ(write_step_trace(import(old).trace), write_step_trace(import(Kineto()).trace));
}

TEST_F(Profiler, GzippedIsTheSame) {
  const std::string text = Kineto().trace.dump();
  const auto file = folder_ / "rank1.json.gz";
  gzFile out = ::gzopen(file.c_str(), "wb");
  ::gzwrite(out, text.data(), static_cast<unsigned>(text.size()));
  ::gzclose(out);
  EXPECT_EQ(write_step_trace(import_profiler(read_profiler_events(file), options).trace),
            write_step_trace(import_profiler(read(text), options).trace));
}

// Converting such numbers to integers is undefined: the sanitizers ended the program.
TEST_F(Profiler, NumbersBeyondIntegersCountAsMissing) {
  Kineto with;
  with.trace["distributedInfo"] = {{"rank", 1e300}, {"world_size", -1e300}};
  for (auto& event : with.trace["traceEvents"]) {
    if (!event.contains("args")) continue;
    for (const char* key : {"bytes", "stream", "correlation", "In msg nelems"})
      if (event["args"].contains(key)) event["args"][key] = 1e300;
  }
  with.trace["traceEvents"].push_back({{"ph", "X"}, {"tid", -1e300}, {"ts", 1e300}, {"dur", 1e300}});
  EXPECT_THROW(import(with), ConfigError);  // nothing is left that tells which thread launched a kernel
}

// The file was left open; the sanitizers' build sees that.
TEST_F(Profiler, DamagedGzipIsRefused) {
  const auto file = folder_.add("damaged.json.gz", "\x1f\x8b\x08 and no more of the format");
  EXPECT_THAT(message_of<ConfigError>([&] { read_profiler_events(file); }), HasSubstr("damaged or cut short"));
}

TEST_F(Profiler, WithoutCollectivesTheParametersMustBeSaid) {
  const Kineto alone(5, false);
  EXPECT_THAT(message_of<ConfigError>([&] { import(alone); }), HasSubstr("--parameters"));
  options.parameters = 2'000'000;
  const ProfilerImport result = import(alone);
  EXPECT_EQ(result.trace.batches[0].buckets.at(0).bytes, 8'000'000);
  EXPECT_EQ(result.trace.batches[0].buckets.at(0).after_phase, "update");
}

/// A convolution with an activation: two kernels with matrix work in a step, as in the profile.
LayerList one_convolution(const std::string& more) {
  return read_layer_list(JsonNode::parse(R"({ "schema": "ganymede.layers/1", "name": "m", "networks": {
    "net": { "input": [3, 8, 8], "layers": [ { "kind": "convolution", "out": 4, "kernel": 3, "bias": false },
                                             { "kind": "activation" })" +
                                             more + R"( ] } },
    "step": [ { "network": "net", "pass": "forward" }, { "network": "net", "pass": "backward" },
              { "network": "net", "pass": "update" } ] })",
                                         "m.json"));
}

// "conv" takes 1.5 ms and "dgrad" 3 ms. The rest, "relu" and "adam", takes 1.5 ms.
TEST_F(Profiler, GivesEachLayerItsMeasuredTime) {
  options.layers = one_convolution("");
  const ProfilerImport result = import(Kineto());
  const std::vector<TraceKernel>& kernels = result.trace.kernels;
  ASSERT_EQ(kernels.size(), 5U);
  EXPECT_EQ(kernels[0].kind, TraceKernel::Kind::convolution);
  EXPECT_NEAR(kernels[0].measured_s, 1.5e-3, 1e-9);
  EXPECT_EQ(kernels[0].phase, "forward");
  EXPECT_EQ(kernels[3].kind, TraceKernel::Kind::convolution_weight_gradient);
  EXPECT_NEAR(kernels[3].measured_s, 3e-3, 1e-9);
  EXPECT_EQ(kernels[3].phase, "backward");
  EXPECT_EQ(kernels[4].op, "adam");
  EXPECT_NEAR(kernels[1].measured_s + kernels[2].measured_s + 7 * kernels[4].measured_s, 1.5e-3, 1e-9);
  EXPECT_NEAR(kernels[2].measured_s / kernels[1].measured_s, 1.5, 1e-9);  // three numbers moved instead of two
  // For each of 64 images the activation moves 2 x 256 numbers; Adam moves 7 x 108, whatever the batch.
  EXPECT_NEAR(kernels[4].measured_s / kernels[1].measured_s, 18.0 / 7 * 108 / (64 * 2 * 256), 1e-9);
  EXPECT_THAT(result.notes, testing::Contains(HasSubstr("each layer keeps its own residual")));
  const StepTrace again = read_step_trace(JsonNode::parse(write_step_trace(result.trace), "trace.json"));
  EXPECT_EQ(again.kernels, kernels);
}

// With one more product in the list, the 4.5 ms of convolutions and products are divided by FLOPs.
TEST_F(Profiler, DividesTheTimeIfTheLayersAreOthers) {
  options.layers = one_convolution(R"(, { "kind": "linear", "out": 1, "bias": false })");
  const ProfilerImport result = import(Kineto());
  double seconds = 0, flops = 0;
  for (const TraceKernel& kernel : result.trace.kernels)
    if (kernel.flops() > 0) seconds += kernel.measured_s, flops += kernel.flops();
  EXPECT_NEAR(seconds, 4.5e-3, 1e-9);
  EXPECT_NEAR(result.trace.kernels[0].measured_s, 4.5e-3 * result.trace.kernels[0].flops() / flops, 1e-9);
  EXPECT_THAT(result.notes, testing::Contains(HasSubstr("all layers keep one residual")));
}

TEST_F(Profiler, CarriesPhasesAsWholesIfNoKernelIsKnown) {
  options.layers = one_convolution("");
  Kineto kineto;
  for (Json& event : kineto.events())
    if (event.value("cat", "") == "kernel" && !event["name"].get<std::string>().starts_with("nccl"))
      event["name"] = "unknown";
  const ProfilerImport result = import(kineto);
  EXPECT_TRUE(result.trace.kernels.empty());
  EXPECT_THAT(result.notes, testing::Contains(HasSubstr("the list of layers has 2 of them")));
}

TEST_F(Profiler, WithoutAnnotationsTheStepIsOnePhase) {
  const ProfilerImport result = import(Kineto(5, true, false));
  EXPECT_EQ(result.trace.batches[0].phases.back().name, "step");
  EXPECT_THAT(result.notes, testing::Contains(HasSubstr("no annotations")));
}

TEST_F(Profiler, StepsOfAnotherKindAreLeftOut) {
  Kineto kineto(6);
  kineto.host("user_annotation", "evaluation", 1e6 + 10'000 + 7000, 500);
  kineto.kernel("eval", 1e6 + 10'000 + 8600, 100, 7, 1e6 + 10'000 + 7100);
  const ProfilerImport result = import(kineto);
  EXPECT_EQ(result.steps, 5U);
  EXPECT_THAT(result.notes, testing::Contains(HasSubstr("1 of 6 steps has other phases")));
}

TEST_F(Profiler, PhasesThatTellNothingAreJoined) {
  Kineto kineto(3);
  for (const int i : {0, 1, 2}) {
    kineto.host("user_annotation", fmt::format("epoch {}", i), 1e6 + 10'000 * i + 7000, 500);
    kineto.kernel("more", 1e6 + 10'000 * i + 8600, 100, 7, 1e6 + 10'000 * i + 7100);
  }
  const ProfilerImport result = import(kineto);
  EXPECT_EQ(result.steps, 3U);
  EXPECT_EQ(result.trace.batches[0].phases.back().name, "step");
  EXPECT_EQ(result.trace.batches[0].phases.back().launches, 5);
  EXPECT_THAT(result.notes, testing::Contains(HasSubstr("another order")));
  EXPECT_NEAR(result.mean.step, 10e-3, 1e-9);
}

TEST_F(Profiler, ABareListOfEventsIsATraceToo) {
  const ProfilerEvents events = read(Kineto().trace["traceEvents"].dump());
  EXPECT_EQ(events.steps.size(), 5U);
  EXPECT_EQ(events.device, "");
  EXPECT_NEAR(import_profiler(events, options).mean.step, 10e-3, 1e-9);
}

// Without marks, steps are where the kernels repeat. Those of the layers repeat within a step, too.
TEST_F(Profiler, StepsThatAreNotMarkedAreFoundWhereKernelsRepeat) {
  Kineto kineto(6);
  for (int i = 0; i < 6; ++i)
    for (int layer = 0; layer < 40; ++layer)
      for (int part = 0; part < 2; ++part)
        kineto.kernel(part == 0 ? "gemm" : "gelu", 1e6 + 10'000 * i + 4000 + 40 * layer + 20 * part, 10, 7,
                      1e6 + 10'000 * i + 2100);
  std::erase_if(kineto.events().elements(),
                [](const Json& event) { return event.value("name", "").starts_with("ProfilerStep"); });
  const ProfilerImport result = import(kineto);
  EXPECT_EQ(result.steps, 5U);  // the sixth has no next one to end it
  EXPECT_NEAR(result.mean.step, 10e-3, 1e-6);
  EXPECT_THAT(result.notes, testing::Contains(HasSubstr("its kernels repeat, 5 times")));
  // The copy before the first kernel belongs to the step before, the phases to their own.
  EXPECT_EQ(result.trace.batches[0].phases[1].name, "forward");
}

TEST_F(Profiler, ATraceInWhichNothingRepeatsIsOneStep) {
  Kineto kineto(1);
  std::erase_if(kineto.events().elements(),
                [](const Json& event) { return event.value("name", "").starts_with("ProfilerStep"); });
  const ProfilerImport result = import(kineto);
  EXPECT_EQ(result.steps, 1U);
  EXPECT_THAT(result.notes, testing::Contains(HasSubstr("counts as one step")));
  EXPECT_NEAR(result.mean.step, 15.1e-3, 1.1e-3);  // from the copy's begin to the late kernel's end
}

// torch/autograd/profiler.py at v1.7.0 wrote a list without categories, in which a process is the kind.
TEST_F(Profiler, TracesOfTheFirstProfilerAreRead) {
  Json events = Json::array();
  for (int i = 0; i < 4; ++i)
    for (const char* name : {"conv2d", "relu", "mul"}) {
      const double start = 1000 + 1500 * i + 200 * static_cast<double>(events.size() % 6);
      for (const char* process : {"CPU functions", "CUDA functions"})
        events.push_back({{"name", name},
                          {"ph", "X"},
                          {"ts", start},
                          {"dur", 100},
                          {"tid", 0},
                          {"pid", process},
                          {"args", Json::object()}});
    }
  options.parameters = 1000;
  const ProfilerImport result = import_profiler(read(events.dump()), options);
  EXPECT_EQ(result.steps, 3U);
  EXPECT_NEAR(result.mean.step, 1500e-6, 1e-9);
  EXPECT_EQ(result.trace.batches[0].phases.back().launches, 3);
}

TEST_F(Profiler, OfSeveralGpusTheBusiestIsTaken) {
  Kineto kineto;
  for (int i = 0; i < 5; ++i) kineto.kernel("other", 1e6 + 10'000 * i, 9000, 7, 1e6 + 10'000 * i, {{"device", 1}});
  options.parameters = 1000;
  const ProfilerImport result = import(kineto);
  EXPECT_NEAR(result.mean.compute, 9e-3, 1e-9);
  EXPECT_THAT(result.notes, testing::Contains(HasSubstr("2 GPUs in it")));
}

// What is left has two whole steps; the third lacks kernels, and so the end of the second is not known.
TEST_F(Profiler, AFileThatIsCutShortIsReadAsFarAsItGoes) {
  const std::string whole = Kineto().trace.dump();
  const std::size_t third = whole.find("\"dgrad\"", whole.find("ProfilerStep#3"));
  const ProfilerImport result = import_profiler(read(whole.substr(0, third)), options);
  EXPECT_EQ(result.steps, 2U);
  EXPECT_NEAR(result.mean.step, 10e-3, 1e-9);
  EXPECT_THAT(result.notes, testing::Contains(HasSubstr("cut short")));
}

TEST_F(Profiler, NumbersThatJsonDoesNotHaveAreZero) {
  std::string text = Kineto().trace.dump();
  const std::size_t args = text.find("\"device\":0") + std::string("\"device\":").size();
  for (const char* number : {"nan", "NaN", "-Infinity", "inf", "null"}) {
    std::string with = text;
    with.replace(args, 1, std::string(number) + ",\"note \\\" nan, inf\":" + number);
    EXPECT_EQ(write_step_trace(import_profiler(read(with), options).trace),
              write_step_trace(import_profiler(read(text), options).trace))
        << number;
  }
}

TEST_F(Profiler, LayersGiveFlops) {
  options.layers = read_layer_list(JsonNode::parse(R"({ "schema": "ganymede.layers/1", "name": "m", "networks": {
    "generator": { "input": [1, 1, 1], "layers": [ { "kind": "linear", "out": 10 } ] },
    "discriminator": { "input": [10, 1, 1], "layers": [ { "kind": "linear", "out": 1 } ] } } })",
                                                   "m.json"));
  const ProfilerImport result = import(Kineto());
  double flops = 0;
  for (const TracePhase& phase : result.trace.batches[0].phases) flops += phase.flops;
  // Generator 20 FLOP forward and 40 backward; discriminator 20 x (2 + 4 + 1 + 1).
  EXPECT_NEAR(flops, 64.0 * (60 + 160), 1e-6);
  EXPECT_NEAR(result.trace.networks.at("model").flops_per_image, 220, 1e-9);
}

TEST_F(Profiler, SaysWhatIsMissing) {
  const auto error = [&](const std::string& text) {
    return message_of<ConfigError>([&] { import_profiler(read(text), options); });
  };
  const std::string whole = Kineto().trace.dump();
  EXPECT_THAT(error(whole.substr(0, 20)), HasSubstr("rank1.json: not valid JSON near byte"));
  EXPECT_THAT(error("{}"), HasSubstr("not a Chrome trace"));
  EXPECT_THAT(error(""), HasSubstr("not valid JSON"));
  EXPECT_THAT(error(R"({ "traceEvents": [] })"), HasSubstr("no events of a GPU among 0"));
  Kineto without_gpu;
  std::erase_if(without_gpu.events().elements(), [](const Json& event) {
    return event.value("cat", "") == "kernel" || event.value("cat", "") == "gpu_memcpy";
  });
  EXPECT_THAT(error(without_gpu.trace.dump()), HasSubstr("no events of a GPU"));
  Kineto idle;
  std::erase_if(idle.events().elements(), [](const Json& event) { return event.value("cat", "") == "kernel"; });
  EXPECT_THAT(error(idle.trace.dump()), HasSubstr("none of its steps has a kernel"));
  EXPECT_THAT(message_of<ConfigError>([&] { read_profiler_events(folder_ / "missing.json"); }),
              HasSubstr("missing.json: cannot be read"));
}

}  // namespace
}  // namespace ganymede::traces
