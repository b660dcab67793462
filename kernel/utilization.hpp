#pragma once
// Samples how busy this process and its GPU are, from a thread of its own.

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "traces/step_trace.hpp"

namespace ganymede::kernel {

// How busy a GPU is and how much of its memory is taken, by NVIDIA's management library (NVML), which comes with the
// driver and is loaded at run time.

class GpuMeter {
 public:
  /// A meter of the GPU with this PCI address ("0000:01:00.0"), or null if the library, the driver or the GPU is
  /// missing.
  static std::unique_ptr<GpuMeter> open(const std::string& bus_id, const char* library = "libnvidia-ml.so.1");
  ~GpuMeter();
  GpuMeter(const GpuMeter&) = delete;
  GpuMeter& operator=(const GpuMeter&) = delete;

  struct Sample {
    double busy = 0;          ///< share of the driver's last sampling interval in which a kernel ran
    double memory_bytes = 0;  ///< memory taken by all processes
  };
  /// Returns nothing if the library reports an error.
  std::optional<Sample> sample() const;

 private:
  struct Functions;
  GpuMeter() = default;

  std::unique_ptr<Functions> functions_;
  void* device_ = nullptr;
};

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
