#pragma once
// Samples what this process uses, and its GPU, from a thread of its own.

#include <condition_variable>
#include <mutex>
#include <thread>

#include "kernel/gpu_meter.hpp"
#include "traces/step_trace.hpp"

namespace ganymede::kernel {

/// Seconds that this process's living threads have been ready to run while something else had the processor, summed
/// over them: how much others disturb a measurement. 0 where the kernel does not say.
double processor_wait_s();

class UtilizationSampler {
 public:
  /// `gpu`: null for none.
  explicit UtilizationSampler(double interval_s = 0.1, std::unique_ptr<GpuMeter> gpu = nullptr);
  ~UtilizationSampler();
  UtilizationSampler(const UtilizationSampler&) = delete;
  UtilizationSampler& operator=(const UtilizationSampler&) = delete;

  /// Stops sampling. "cpu": cores busy in each interval; "cpu_wait": threads that waited for one, see processor_wait_s;
  /// "memory_bytes": resident. Of a GPU "gpu": the share of the time that a kernel ran, and "gpu_memory_bytes".
  TraceUtilization finish();

 private:
  void run();
  void sample();
  void stop();

  std::unique_ptr<GpuMeter> gpu_;
  TraceUtilization result_;
  double last_wall_s_, last_cpu_s_, last_wait_s_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace ganymede::kernel
