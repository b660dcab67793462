#pragma once
// A trace as Kineto writes it, made up, and what tests of its import share.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/json.hpp"
#include "common/json_value.hpp"
#include "common/units.hpp"
#include "support/temporary_folder.hpp"
#include "traces/profiler_trace.hpp"

namespace ganymede::traces {

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

}  // namespace ganymede::traces
