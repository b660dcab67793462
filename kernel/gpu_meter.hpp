#pragma once
// How busy a GPU is and how much of its memory is taken, by NVIDIA's management library (NVML), which comes with the
// driver and is loaded at run time.

#include <memory>
#include <optional>
#include <string>

namespace ganymede::kernel {

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

}  // namespace ganymede::kernel
