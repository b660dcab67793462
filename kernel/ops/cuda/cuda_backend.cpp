#include "kernel/ops/cuda/cuda_backend.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "common/errors.hpp"
#include "common/module.hpp"
#include "kernel/parallel/gpu_exchange.hpp"

namespace ganymede::kernel {
namespace {

struct Module {
  MakeCudaBackend make = nullptr;
  CountGpus count = nullptr;
  MakeGpuExchange make_exchange = nullptr;
  MakeGpuExchangeId make_exchange_id = nullptr;
  NameGpu name_gpu = nullptr;
  std::string why_not = {};
};

Module load_module() {
  std::error_code ignored;
  const std::filesystem::path file = module_file("cuda");
  if (!std::filesystem::exists(file, ignored))
    return {.why_not =
                "this build has no CUDA module: it was configured where no GPU was, or no CUDA toolkit with cuDNN and "
                "NCCL; -DGANYMEDE_CUDA=ON builds it without a GPU (docs/install.md)"};
  void* handle = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return {.why_not = fmt::format("its module cannot be loaded: {}", ::dlerror())};
  Module module{reinterpret_cast<MakeCudaBackend>(::dlsym(handle, kMakeCudaBackend)),
                reinterpret_cast<CountGpus>(::dlsym(handle, kCountGpus)),
                reinterpret_cast<MakeGpuExchange>(::dlsym(handle, kMakeGpuExchange)),
                reinterpret_cast<MakeGpuExchangeId>(::dlsym(handle, kMakeGpuExchangeId)),
                reinterpret_cast<NameGpu>(::dlsym(handle, kNameGpu))};
  if (module.make == nullptr || module.count == nullptr || module.make_exchange == nullptr ||
      module.make_exchange_id == nullptr || module.name_gpu == nullptr)
    return {.why_not = file.string() + " is no CUDA module of this program"};
  return module;
}

/// False if there is no NVIDIA driver. Checked first, because the module takes a tenth of a second to load.
bool has_driver() {
  std::error_code ignored;
  return std::filesystem::exists("/dev/nvidiactl", ignored) || std::filesystem::exists("/dev/dxg", ignored);
}

const Module& loaded_module() {
  static const Module module = load_module();
  return module;
}

}  // namespace

Gpus count_gpus() {
  if (!has_driver()) return {0, "no GPU with NVIDIA's driver"};
  const Module& module = loaded_module();
  if (module.count == nullptr) return {0, module.why_not};
  const int count = module.count();
  return {count, count > 0 ? "" : "no GPU, or no driver that serves this CUDA runtime"};
}

std::unique_ptr<Backend> open_cuda_backend(const CudaOptions& options) {
  const Gpus gpus = count_gpus();
  if (gpus.count == 0) throw ConfigError(fmt::format("--backend: found cuda, expected cpu here: {}", gpus.why_none));
  if (options.device < 0 || options.device >= gpus.count)
    throw ConfigError(fmt::format("--gpus: GPU {} is not there, expected fewer: {} found", options.device, gpus.count));
  return std::unique_ptr<Backend>(loaded_module().make(options));
}

std::unique_ptr<GpuExchange> open_gpu_exchange(const GpuExchangeOptions& options) {
  return std::unique_ptr<GpuExchange>(loaded_module().make_exchange(options));
}

GpuExchangeId make_gpu_exchange_id() {
  GpuExchangeId id;
  loaded_module().make_exchange_id(id);
  return id;
}

std::string bus_id_of_gpu(int device) {
  std::string bus_id;
  loaded_module().name_gpu(device, bus_id);
  return bus_id;
}

}  // namespace ganymede::kernel
