#pragma once
// Samples how busy this process and its GPU are, from a thread of its own.

#include <condition_variable>
#include <mutex>
#include <thread>

#include "kernel/gpu_meter.hpp"
#include "traces/step_trace.hpp"

namespace ganymede::kernel {

/// Seconds for which threads of this process have been ready to run while something else had the processor, summed over
/// its living threads: how much other programs disturb a measurement. 0 if the system does not say.
double processor_wait_s();

class UtilizationSampler {
 public:
  /// Starts sampling. `gpu` may be null.
  explicit UtilizationSampler(double interval_s = 0.1, std::unique_ptr<GpuMeter> gpu = nullptr);
  ~UtilizationSampler();
  UtilizationSampler(const UtilizationSampler&) = delete;
  UtilizationSampler& operator=(const UtilizationSampler&) = delete;

  /// Stops sampling and returns for each interval: "cpu", the cores that were busy; "cpu_wait", the mean number of
  /// threads that waited for one (see processor_wait_s); "memory_bytes", resident memory; and with a GPU "gpu", the
  /// share of the time in which a kernel ran, and "gpu_memory_bytes".
  traces::TraceUtilization finish();

 private:
  void run();
  void sample();
  void stop();

  std::unique_ptr<GpuMeter> gpu_;
  traces::TraceUtilization result_;
  double last_wall_s_, last_cpu_s_, last_wait_s_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace ganymede::kernel
