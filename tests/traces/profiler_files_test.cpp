// Files of profilers: of every version, whole or cut short, with steps that are marked or not.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <map>

#include "common/errors.hpp"
#include "kineto.hpp"
#include "support/errors.hpp"
#include "support/when.hpp"
#include "traces/profiler_trace.hpp"

namespace ganymede::traces {
namespace {

using testing::AllOf;
using testing::HasSubstr;

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

TEST_F(Profiler, NumbersInQuotesAreNumbers) {
  Kineto quoted;
  for (Json& event : quoted.events()) {
    for (const char* key : {"ts", "dur"})
      if (event.contains(key)) event[key] = event[key].dump();
    if (event.contains("args"))
      for (Json& argument : event["args"])
        if (argument.is_number()) argument = argument.dump();
  }
  for (const char* odd : {"nan", "inf", "1e999", "soon", ""})
    quoted.events().push_back({{"ph", "X"}, {"cat", "kernel"}, {"name", "k"}, {"ts", odd}, {"dur", "1"}});
  EXPECT_EQ(write_step_trace(import(quoted).trace), write_step_trace(import(Kineto()).trace));
}

TEST_F(Profiler, BeginAndEndEventsAreOne) {
  const Kineto whole;
  Kineto parts;
  Json split = Json::array();
  for (Json event : parts.events()) {
    if (event.value("ph", "") != "X") {
      split.push_back(event);
      continue;
    }
    const double end = event["ts"].get<double>() + event["dur"].get<double>();
    event.erase("dur");
    event["ph"] = "B";
    split.push_back(event);
    split.push_back({{"ph", "E"}, {"name", event["name"]}, {"tid", event["tid"]}, {"ts", end}});
    if (event.contains("pid")) split.back()["pid"] = event["pid"];
  }
  split.push_back({{"ph", "E"}, {"tid", 1}, {"ts", 5}});  // of a begin before the recording
  parts.trace["traceEvents"] = split;
  EXPECT_EQ(write_step_trace(import(parts).trace), write_step_trace(import(whole).trace));
}

TEST_F(Profiler, AFolderStandsForItsTraces) {
  const TemporaryFolder folder;
  folder.add("b.pt.trace.json", "[]");
  folder.add("a.pt.trace.json.gz", "");
  folder.add("notes.txt", "");
  EXPECT_THAT(profiler_files(folder.path()), testing::ElementsAre(HasSubstr("a.pt.trace"), HasSubstr("b.pt.trace")));
  EXPECT_THAT(profiler_files("rank0.json"), testing::ElementsAre("rank0.json"));
  const TemporaryFolder empty;
  EXPECT_THAT(message_of<ConfigError>([&] { (void)profiler_files(empty.path()); }),
              HasSubstr("no *.json or *.json.gz in this folder"));
}

// Not all traces say which rank they are of; then their names do.
TEST_F(Profiler, TheRankIsThatOfTheFilesNameWhereTheTraceHasNone) {
  Kineto with;
  const std::string saying_one = with.trace.dump();
  with.trace.erase("distributedInfo");
  const TemporaryFolder folder;
  const auto rank = [&](const char* name, const std::string& text) {
    return read_profiler_events(folder.add(name, text), {}).rank;
  };
  EXPECT_EQ(rank("rank3.json", with.trace.dump()), 3);
  EXPECT_EQ(rank("trace_Rank-12_step4.json", with.trace.dump()), 12);
  EXPECT_EQ(rank("ranked.json", with.trace.dump()), 0);
  EXPECT_EQ(rank("rank99999999999999.json", with.trace.dump()), 0);
  EXPECT_EQ(rank("rank7.json", saying_one), 1);
  with.trace["distributedInfo"] = {{"rank", "2"}, {"world_size", "4"}};  // in quotes, as Chrome's format allows
  EXPECT_EQ(rank("rank7.json", with.trace.dump()), 2);
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

// 100 KB became 100 MB, and as many bytes of memory for each further KB.
/// A trace of so many MiB of nothing, which are a thousandth of it when compressed.
void write_bomb(const std::filesystem::path& file, int mib) {
  gzFile out = ::gzopen(file.c_str(), "wb");
  const std::string piece(1 << 20, ' ');
  ::gzputs(out, "{\"traceEvents\": [");
  for (int i = 0; i < mib; ++i) ::gzwrite(out, piece.data(), static_cast<unsigned>(piece.size()));
  ::gzclose(out);
}

TEST_F(Profiler, WhatInflatesBeyondMeasureIsRefused) {
  const auto file = folder_ / "bomb.json.gz";
  write_bomb(file, 2);
  EXPECT_THAT(message_of<ConfigError>([&] { read_profiler_events(file, {}, std::int64_t{1} << 20); }),
              testing::AllOf(HasSubstr("bomb.json.gz: found more than 1 MiB"), HasSubstr("--max-size allows more")));
  EXPECT_THAT(message_of<ConfigError>([&] { read_profiler_events(file, {}, std::int64_t{4} << 20); }),
              HasSubstr("no events of a GPU"));
}

TEST_F(Profiler, WhatInflatesBeyond64MibAndAHundredTimesItsSizeIsRefused) {
  NOT_SANITIZED("it reads 74 MiB character by character");
  const auto file = folder_ / "bomb.json.gz";
  write_bomb(file, 100);
  EXPECT_THAT(message_of<ConfigError>([&] { read_profiler_events(file); }),
              testing::AllOf(HasSubstr("bomb.json.gz: found more than 7"), HasSubstr("--max-size allows more")));
}

// The file was left open; the sanitizers' build sees that.
TEST_F(Profiler, DamagedGzipIsRefused) {
  const auto file = folder_.add("damaged.json.gz", "\x1f\x8b\x08 and no more of the format");
  EXPECT_THAT(message_of<ConfigError>([&] { read_profiler_events(file); }), HasSubstr("damaged or cut short"));
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

// Every third step does more. A layer within a step is none, though its kernels repeat.
TEST_F(Profiler, StepsThatDoMoreNowAndThenAreSteps) {
  options.parameters = 1000;
  Kineto lazy(0, false), layers(0, false);
  lazy.events() = layers.events() = Json::array();
  for (int i = 0; i < 9; ++i)
    for (int k = 0; k < (i % 3 == 0 ? 14 : 10); ++k)
      lazy.kernel(k < 10 ? fmt::format("kernel {}", k) : "penalty", 1e6 + 10'000 * i + 500 * k, 400, 7, -1);
  const ProfilerImport result = import(lazy);
  EXPECT_EQ(result.steps, 8U);
  EXPECT_NEAR(result.mean.step, 10e-3, 1e-6);
  layers.kernel("embedding", 1e6, 400, 7, -1);
  for (int layer = 0; layer < 12; ++layer)
    for (int k = 0; k < 5; ++k)
      layers.kernel(fmt::format("layer {}", k), 1e6 + 2500 * layer + 500 * k + 500, 400, 7, -1);
  for (int k = 0; k < 5; ++k) layers.kernel(fmt::format("head {}", k), 1.04e6 + 500 * k, 400, 7, -1);
  EXPECT_EQ(import(layers).steps, 1U);
}

/// A trace without marks: kernels of 80 us, 20 us apart, by name; "|" stands for 250 us in which the stream waits.
Kineto unmarked(const std::vector<std::string>& names) {
  Kineto out(0, false);
  out.events() = Json::array();
  double at = 1e6;
  for (const std::string& name : names) {
    if (name != "|") out.kernel(name, at, 80, 7, -1);
    at += name == "|" ? 250 : 100;
  }
  return out;
}

// Discriminator and generator run the same kernels, the one more of them, and both "adam": 23 of 100 us and a wait.
TEST_F(Profiler, HalvesOfAStepAreNoSteps) {
  options.parameters = 1000;
  for (const int lazy : {0, 16}) {  // every so many-th step is longer
    std::vector<std::string> names;
    for (int i = 0; i < 33; ++i) {
      for (const int layers : {12, 9}) {
        for (int k = 0; k < layers; ++k) names.push_back(fmt::format("conv{}", k % 3));
        names.emplace_back("adam");
      }
      if (lazy > 0 && i % lazy == 0) names.insert(names.end(), 8, "penalty");
      names.emplace_back("|");
    }
    const ProfilerImport result = import(unmarked(names));
    EXPECT_GE(result.steps, 29U) << lazy;
    EXPECT_LE(result.steps, 32U) << lazy;
    EXPECT_NEAR(result.mean.step, 2.55e-3, 0.06e-3) << lazy;
  }
}

// Whatever runs before the first step, and once, is none, nor is it part of one: the stream waits for steps.
TEST_F(Profiler, AWarmUpIsNoStep) {
  options.parameters = 1000;
  for (const int before : {1, 200})
    for (const int lazy : {0, 4}) {
      std::vector<std::string> names;
      for (int k = 0; k < before; ++k) names.push_back(fmt::format("warm-up{}", k));
      for (int i = 0; i < 17; ++i) {
        names.emplace_back("|");
        for (int k = 0; k < 8; ++k) names.push_back(fmt::format("kernel{}", k));
        if (lazy > 0 && i % lazy == 0) names.insert(names.end(), 4, "penalty");
      }
      const ProfilerImport result = import(unmarked(names));
      EXPECT_EQ(result.steps, 16U) << before << " " << lazy;
      EXPECT_NEAR(result.mean.step, lazy > 0 ? 1.15e-3 : 1.05e-3, 1e-6) << before << " " << lazy;
    }
  const ProfilerImport once = import(unmarked({"a", "b", "|", "a", "b", "|"}));
  EXPECT_THAT(once.notes, testing::Contains(testing::EndsWith("its kernels repeat, once")));
  EXPECT_THAT(once.notes, testing::Not(testing::Contains(HasSubstr("the step in which it ran"))));
}

// The host marks steps of 1 ms and runs ahead; no launch says so.
TEST_F(Profiler, MarksOfTheHostTellNothingWithoutLaunches) {
  options.parameters = 1000;
  Kineto kineto(0, false);
  kineto.events() = Json::array();
  for (int i = 0; i < 6; ++i) {
    kineto.host("user_annotation", fmt::format("ProfilerStep#{}", i), 1e6 + 1000 * i, 990);
    for (int k = 0; k < 10; ++k)
      kineto.kernel(fmt::format("kernel {}", k), 1e6 + 10'000 * i + 950 * k + 100, 900, 7, -1);
  }
  const ProfilerImport result = import(kineto);
  EXPECT_NEAR(result.mean.step, 10e-3, 1e-6);
  EXPECT_THAT(result.notes, testing::Contains(HasSubstr("no launch in it says which kernels a marked step has")));
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

// A schedule that repeats records some steps, trains on, and records some more: what lies between is no step.
TEST_F(Profiler, StepsThatDoNotFollowEachOtherAreNoPeriod) {
  Kineto kineto(6);
  for (Json& event : kineto.events()) {
    if (!event.contains("ts") || event["ts"].get<double>() < 1e6 + 29'000) continue;
    event["ts"] = event["ts"].get<double>() + 5e6;
    const std::string name = event["name"].get<std::string>();
    if (name.starts_with("ProfilerStep#"))
      event["name"] = "ProfilerStep#" + std::to_string(100 + std::stoi(name.substr(13)));
  }
  const ProfilerImport result = import(kineto);
  EXPECT_EQ(result.steps, 6U);
  EXPECT_NEAR(result.mean.step, 10e-3, 0.3e-3);
}

}  // namespace
}  // namespace ganymede::traces
