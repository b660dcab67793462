#pragma once
// How busy a GPU is and what of its memory is taken, by NVIDIA's management library, which comes with the driver.

#include <memory>
#include <optional>
#include <string>

namespace ganymede::kernel {

class GpuMeter {
 public:
  /// Of the GPU with this PCI address ("0000:01:00.0"). Null where the library, the driver or the GPU is not there.
  static std::unique_ptr<GpuMeter> open(const std::string& bus_id, const char* library = "libnvidia-ml.so.1");
  ~GpuMeter();
  GpuMeter(const GpuMeter&) = delete;
  GpuMeter& operator=(const GpuMeter&) = delete;

  struct Sample {
    double busy = 0;          ///< share of the driver's own last interval in which a kernel ran
    double memory_bytes = 0;  ///< taken, by all processes
  };
  /// Nullopt when the library does not say.
  std::optional<Sample> sample() const;

 private:
  struct Functions;
  GpuMeter() = default;

  std::unique_ptr<Functions> functions_;
  void* device_ = nullptr;
};

}  // namespace ganymede::kernel
