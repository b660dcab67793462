#include "kernel/parallel/communicator.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "common/errors.hpp"
#include "common/module.hpp"
#include "common/process.hpp"
#include "common/random.hpp"

namespace ganymede::kernel {

int launched_processes() {
  // These variables are set by Open MPI's and PMI's launchers, and by Slurm if it starts the processes itself.
  // SLURM_NTASKS does not suffice, because a batch script's own shell has it too.
  for (const char* variable : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"})
    if (const char* value = std::getenv(variable)) return std::max(1, std::atoi(value));
  if (std::getenv("PMIX_RANK") != nullptr || std::getenv("SLURM_STEPID") != nullptr)
    if (const char* value = std::getenv("SLURM_STEP_NUM_TASKS")) return std::max(1, std::atoi(value));
  return 1;
}

int local_rank() {
  for (const char* variable : {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"})
    if (const char* value = std::getenv(variable)) return std::max(0, std::atoi(value));
  return 0;
}

namespace {

constexpr const char* kProcessesHere[] = {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "SLURM_STEP_TASKS_PER_NODE"};

/// True if the process has one of the variables that a launcher gives to those that it starts.
bool is_launched(pid_t process) {
  std::ifstream in(fmt::format("/proc/{}/environ", process), std::ios::binary);
  for (std::string one; std::getline(in, one, '\0');)
    for (const char* variable : kProcessesHere)
      if (one.starts_with(std::string(variable) + "=")) return true;
  return false;
}

/// 0 if it is not known.
pid_t parent_of(pid_t process) {
  std::ifstream in(fmt::format("/proc/{}/status", process));
  pid_t parent = 0;
  for (std::string word; in >> word;)
    if (word == "PPid:") {
      in >> parent;
      break;
    }
  return parent;
}

}  // namespace

int cores_of_launcher() {
  pid_t process = ::getpid();
  while (process > 0 && is_launched(process)) process = parent_of(process);
  cpu_set_t mask;
  CPU_ZERO(&mask);
  return ::sched_getaffinity(process, sizeof mask, &mask) == 0 ? CPU_COUNT(&mask) : usable_cores();
}

int cores_of_process(int processors, int usable) {
  // Where the launcher binds each process to processors of its own, the part is no less than these.
  int here = 1;
  for (const char* variable : kProcessesHere)
    if (const char* value = std::getenv(variable)) {
      here = std::max(1, std::atoi(value));  // of Slurm's "4(x2),3" the first node's
      break;
    }
  return std::clamp(processors / here, 1, usable);
}

int gpu_of_process(int visible) { return visible > 0 ? local_rank() % visible : 0; }

namespace {

/// The function of that name in the MPI module, which is loaded. Throws ConfigError if there is no module.
void* function_of_mpi_module(const char* name) {
  const std::filesystem::path module = module_file("mpi");
  // RTLD_DEEPBIND: SimGrid defines MPI functions of the same names; the module must call those of its own MPI library.
  void* handle = ::dlopen(module.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
  if (handle == nullptr)
    throw ConfigError(
        fmt::format("started as {} processes, expected one: the MPI module is not there ({}); install its "
                    "package (ganymede-mpi), or an MPI (Debian: libopenmpi-dev), configure and build again",
                    launched_processes(), ::dlerror()));
  void* function = ::dlsym(handle, name);
  if (function == nullptr) throw ConfigError(fmt::format("{}: is no MPI module of this program", module.string()));
  return function;
}

/// A number by which texts can be told apart, and which is exact as a double.
double option_number(const std::string& text) {
  constexpr unsigned kBitsOfADouble = 53;
  return static_cast<double>(fnv1a(text) >> (64U - kBitsOfADouble));
}

}  // namespace

std::unique_ptr<Communicator> open_communicator() {
  if (launched_processes() == 1) return nullptr;
  return std::unique_ptr<Communicator>(reinterpret_cast<MakeCommunicator>(function_of_mpi_module(kMakeCommunicator))());
}

std::unique_ptr<Messenger> open_messenger() {
  if (launched_processes() == 1) return nullptr;
  return std::unique_ptr<Messenger>(reinterpret_cast<MakeMessenger>(function_of_mpi_module(kMakeMessenger))());
}

void check_same_values(const NamedValues& values, Communicator& communicator) {
  const auto [rank, ranks] = communicator.shard();
  // A row for each process; the others' rows are zeros here, so that the sum has all of them.
  std::vector<double> table(values.size() * static_cast<std::size_t>(ranks));
  for (std::size_t i = 0; i < values.size(); ++i)
    table[static_cast<std::size_t>(rank) * values.size() + i] = option_number(values[i].second);
  communicator.sum(table);
  for (std::size_t at = values.size(); at < table.size(); ++at)
    if (const std::size_t i = at % values.size(); table[at] != table[i])
      throw ConfigError(
          fmt::format("{}: rank {} was started with another value than rank 0 (here: \"{}\"), expected the "
                      "same in all processes of a training",
                      values[i].first, at / values.size(), values[i].second));
}

}  // namespace ganymede::kernel
