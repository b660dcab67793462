#include "kernel/utilization.hpp"

#include <dlfcn.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <system_error>

namespace ganymede::kernel {
namespace {

double wall_s() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

double cpu_s() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](timeval time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double resident_bytes() {
  long total = 0, resident = 0;
  if (std::FILE* file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%ld %ld", &total, &resident) != 2) resident = 0;
    std::fclose(file);
  }
  return static_cast<double>(resident) * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

// Declarations from NVML's reference, in which 0 means success. They are repeated here because NVML's header is part of
// the CUDA toolkit, which building does not need.
template <class Function>
bool find(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(::dlsym(library, name));
  return function != nullptr;
}

}  // namespace

double processor_wait_s() {
  std::error_code ignored;
  double nanoseconds = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", ignored)) {
    // A line of three numbers: nanoseconds on a processor, nanoseconds waiting for one, number of time slices.
    unsigned long long ran = 0, waited = 0;
    if (std::FILE* file = std::fopen((task.path() / "schedstat").c_str(), "r")) {
      if (std::fscanf(file, "%llu %llu", &ran, &waited) == 2) nanoseconds += static_cast<double>(waited);
      std::fclose(file);
    }
  }
  return nanoseconds * 1e-9;
}

UtilizationSampler::UtilizationSampler(double interval_s, std::unique_ptr<GpuMeter> gpu)
    : gpu_(std::move(gpu)),
      result_{interval_s, {{"cpu", {}}, {"cpu_wait", {}}, {"memory_bytes", {}}}},
      last_wall_s_(wall_s()),
      last_cpu_s_(cpu_s()),
      last_wait_s_(processor_wait_s()),
      thread_([this] { run(); }) {}

UtilizationSampler::~UtilizationSampler() { stop(); }

void UtilizationSampler::run() {
  std::unique_lock lock(mutex_);
  const std::chrono::duration<double> interval(result_.interval_s);
  while (!wake_.wait_for(lock, interval, [this] { return stop_; })) sample();
}

void UtilizationSampler::sample() {
  const double wall = wall_s(), cpu = cpu_s(), wait = processor_wait_s();
  result_.samples["cpu"].push_back((cpu - last_cpu_s_) / (wall - last_wall_s_));
  // The sum can fall, because it no longer includes threads that have ended.
  result_.samples["cpu_wait"].push_back(std::max(0.0, wait - last_wait_s_) / (wall - last_wall_s_));
  result_.samples["memory_bytes"].push_back(resident_bytes());
  if (gpu_ != nullptr)
    if (const auto sample = gpu_->sample()) {
      result_.samples["gpu"].push_back(sample->busy);
      result_.samples["gpu_memory_bytes"].push_back(sample->memory_bytes);
    }
  last_wall_s_ = wall;
  last_cpu_s_ = cpu;
  last_wait_s_ = wait;
}

void UtilizationSampler::stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

traces::TraceUtilization UtilizationSampler::finish() {
  stop();
  if (result_.samples["cpu"].empty()) sample();  // the training was shorter than one interval
  return result_;
}

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
