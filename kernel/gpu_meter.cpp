#include "kernel/gpu_meter.hpp"

#include <dlfcn.h>

namespace ganymede::kernel {
namespace {

// Declarations from NVML's reference, in which 0 means success. They are repeated here because NVML's header is part of
// the CUDA toolkit, which building does not need.
template <class Function>
bool find(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(::dlsym(library, name));
  return function != nullptr;
}

}  // namespace

struct GpuMeter::Functions {
  struct Utilization {
    unsigned gpu, memory;  // per cent
  };
  struct Memory {
    unsigned long long total, free, used;
  };

  void* library = nullptr;
  int (*shutdown)() = nullptr;
  int (*utilization)(void* device, Utilization*) = nullptr;
  int (*memory)(void* device, Memory*) = nullptr;

  ~Functions() {
    if (shutdown != nullptr) shutdown();
    if (library != nullptr) ::dlclose(library);
  }
};

std::unique_ptr<GpuMeter> GpuMeter::open(const std::string& bus_id, const char* library) {
  if (bus_id.empty()) return nullptr;
  auto functions = std::make_unique<Functions>();
  functions->library = ::dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (functions->library == nullptr) return nullptr;
  int (*initialize)() = nullptr, (*shutdown)() = nullptr;
  int (*by_address)(const char*, void**) = nullptr;
  void* device = nullptr;
  if (!find(functions->library, "nvmlInit_v2", initialize) || !find(functions->library, "nvmlShutdown", shutdown) ||
      !find(functions->library, "nvmlDeviceGetHandleByPciBusId_v2", by_address) ||
      !find(functions->library, "nvmlDeviceGetUtilizationRates", functions->utilization) ||
      !find(functions->library, "nvmlDeviceGetMemoryInfo", functions->memory) || initialize() != 0)
    return nullptr;
  functions->shutdown = shutdown;
  if (by_address(bus_id.c_str(), &device) != 0) return nullptr;
  std::unique_ptr<GpuMeter> meter(new GpuMeter);
  meter->functions_ = std::move(functions);
  meter->device_ = device;
  return meter;
}

GpuMeter::~GpuMeter() = default;

std::optional<GpuMeter::Sample> GpuMeter::sample() const {
  Functions::Utilization utilization{};
  Functions::Memory memory{};
  if (functions_->utilization(device_, &utilization) != 0 || functions_->memory(device_, &memory) != 0)
    return std::nullopt;
  return Sample{utilization.gpu / 100.0, static_cast<double>(memory.used)};
}

}  // namespace ganymede::kernel
