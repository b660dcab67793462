#include "common/host_inventory.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <thread>

#include "common/json_value.hpp"
#include "common/process.hpp"
#include "common/units.hpp"

namespace ganymede {
namespace {

namespace fs = std::filesystem;

// The lines of a file in /proc or /sys; none if it does not exist. A missing file is not an error here, unlike for
// read_file().
std::vector<std::string> lines_of(const fs::path& path) {
  std::vector<std::string> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

std::string trimmed(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

/// Returns the text after the colon of the first line that begins with `key`; empty if there is none.
std::string field(const std::vector<std::string>& lines, std::string_view key) {
  for (const std::string& line : lines) {
    const std::size_t colon = line.find(':');
    if (line.starts_with(key) && colon != std::string::npos) return trimmed(line.substr(colon + 1));
  }
  return "";
}

/// Reads a size of /proc/meminfo such as "16318400 kB", where kB means KiB.
Bytes kibibytes(const std::string& text) { return Bytes{1024 * std::strtod(text.c_str(), nullptr)}; }

/// The memory limit of the container (by cgroup 2, then 1); nothing if it has none.
std::optional<Bytes> memory_limit() {
  for (const char* path : {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    const auto lines = lines_of(path);
    if (lines.empty() || lines[0] == "max") continue;
    return Bytes{std::strtod(lines[0].c_str(), nullptr)};
  }
  return std::nullopt;
}

HostProcessor inspect_processor() {
  HostProcessor cpu;
  const std::string model = field(lines_of("/proc/cpuinfo"), "model name");
  cpu.model = model.empty() ? "unknown" : model;
  cpu.cores = static_cast<int>(std::thread::hardware_concurrency());
  cpu.usable = usable_cores();
  const HostMemory memory = take_host_memory();
  cpu.memory = memory.total;
  cpu.available = memory.available;
#if defined(__x86_64__)
  cpu.avx2 = __builtin_cpu_supports("avx2") != 0;
  cpu.fma = __builtin_cpu_supports("fma") != 0;
  cpu.avx512 = __builtin_cpu_supports("avx512f") != 0;
#endif
  return cpu;
}

/// A shared library that stays loaded while this object lives; null if it is not installed.
struct Close {
  void operator()(void* handle) const { dlclose(handle); }
};
using Library = std::unique_ptr<void, Close>;
Library load_library(const char* name) { return Library(dlopen(name, RTLD_LAZY | RTLD_LOCAL)); }

template <class Function>
Function* function_of(const Library& library, const char* name) {
  return reinterpret_cast<Function*>(dlsym(library.get(), name));
}

/// The newest CUDA version that the driver supports. cuDriverGetVersion gives 1000 x major + 10 x minor (CUDA driver
/// API).
std::optional<std::string> driver_cuda_version() {
  const Library cuda = load_library("libcuda.so.1");
  if (!cuda) return std::nullopt;
  const auto get_version = function_of<int(int*)>(cuda, "cuDriverGetVersion");
  int version = 0;
  if (get_version == nullptr || get_version(&version) != 0) return std::nullopt;
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

/// "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar 5 ...": the first word of digits and dots is the
/// version.
std::optional<std::string> module_version() {
  std::istringstream words(field(lines_of("/proc/driver/nvidia/version"), "NVRM version"));
  for (std::string word; words >> word;)
    if (word.find('.') != std::string::npos && word.find_first_not_of("0123456789.") == std::string::npos) return word;
  return std::nullopt;
}

std::vector<fs::path> entries(const fs::path& folder) {
  std::vector<fs::path> paths;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none)) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  return paths;
}

HostGpus inspect_graphics() {
  HostGpus gpu;
  for (const fs::path& card : entries("/proc/driver/nvidia/gpus")) {
    const std::string model = field(lines_of(card / "information"), "Model");
    gpu.devices.push_back(model.empty() ? card.filename().string() : model);
  }
  // A container may have the device files without the module's folder.
  if (gpu.devices.empty()) {
    for (int i = 0; fs::exists(fmt::format("/dev/nvidia{}", i)); ++i)
      gpu.devices.push_back(fmt::format("/dev/nvidia{}", i));
  }
  gpu.driver = module_version();
  gpu.cuda = driver_cuda_version();
  return gpu;
}

std::optional<std::string> program_on_path(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    const fs::path candidate = fs::path(folder) / name;
    std::error_code none;
    if (fs::is_regular_file(candidate, none) && access(candidate.c_str(), X_OK) == 0) return candidate.string();
  }
  return std::nullopt;
}

HostDependency program(const std::string& name, const std::string& advice) {
  const auto path = program_on_path(name);
  return {name, path.has_value(), path.value_or(advice)};
}

/// Looks for cuDNN. cudnnGetVersion gives 10000 x major + 100 x minor + patch since cuDNN 9.
HostDependency inspect_cudnn() {
  const Library library = load_library("libcudnn.so.9");
  const auto get_version = library ? function_of<std::size_t()>(library, "cudnnGetVersion") : nullptr;
  if (get_version == nullptr)
    return {"cuDNN", false, "libcudnn.so.9 not found; NVIDIA's package libcudnn9-dev-cuda-12 or newer"};
  const std::size_t version = get_version();
  return {"cuDNN", true, fmt::format("{}.{}.{}", version / 10000, version % 10000 / 100, version % 100)};
}

/// Looks for NCCL. ncclGetVersion gives 10000 x major + 100 x minor + patch since NCCL 2.9.
HostDependency inspect_nccl() {
  const Library library = load_library("libnccl.so.2");
  const auto get_version = library ? function_of<int(int*)>(library, "ncclGetVersion") : nullptr;
  int version = 0;
  if (get_version == nullptr || get_version(&version) != 0)
    return {"NCCL", false, "libnccl.so.2 not found; NVIDIA's package libnccl-dev"};
  return {"NCCL", true, fmt::format("{}.{}.{}", version / 10000, version % 10000 / 100, version % 100)};
}

}  // namespace

OrderedJson to_json(const HostInventory& host) {
  const auto text_or_null = [](const std::optional<std::string>& text) {
    return text ? OrderedJson(*text) : OrderedJson(nullptr);
  };
  const HostProcessor& cpu = host.processor;
  OrderedJson out;
  out["processor"] = {{"model", cpu.model},
                      {"cores", cpu.cores},
                      {"usable_cores", cpu.usable},
                      {"memory_bytes", static_cast<std::int64_t>(cpu.memory.si)},
                      {"available_bytes", static_cast<std::int64_t>(cpu.available.si)},
                      {"avx2", cpu.avx2},
                      {"fma", cpu.fma},
                      {"avx512", cpu.avx512}};
  out["gpu"] = {{"devices", host.graphics.devices},
                {"driver", text_or_null(host.graphics.driver)},
                {"cuda", text_or_null(host.graphics.cuda)}};
  for (const HostDependency& item : host.dependencies)
    out["dependencies"].push_back({{"name", item.name}, {"found", item.found}, {"detail", item.detail}});
  return out;
}

HostMemory take_host_memory() {
  const auto memory = lines_of("/proc/meminfo");
  Bytes total = kibibytes(field(memory, "MemTotal"));
  if (const auto limit = memory_limit()) total = std::min(total, *limit);
  return {total, std::min(total, kibibytes(field(memory, "MemAvailable")))};
}

HostInventory take_host_inventory() {
  return {inspect_processor(),
          inspect_graphics(),
          {program("nvcc", "not on PATH; the CUDA toolkit, NVIDIA's package cuda-toolkit"), inspect_cudnn(),
           inspect_nccl(), program("mpirun", "not on PATH; Debian's packages openmpi-bin and libopenmpi-dev")}};
}

}  // namespace ganymede
