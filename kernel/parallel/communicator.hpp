#pragma once
// Communication between the processes of one data-parallel training. Each has a replica of the model and an equal part
// of every batch.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ganymede::kernel {

/// A process's part of a training: it has the images [rank * batch, (rank + 1) * batch) of each step, and of the random
/// numbers, which all processes draw alike, those that belong to its images.
struct Shard {
  int rank = 0, ranks = 1;
};

/// Connects the processes of a training. All processes must make the same calls in the same order; a call returns when
/// its result is there. The calls whose names end in _gradients may be made by another thread than the rest,
/// concurrently with them. All throw Failure if the network fails.
class Communicator {
 public:
  Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  virtual ~Communicator() = default;

  virtual std::string name() const = 0;  ///< for example "MPI: Open MPI v4.1.4"
  /// True if the replicas are threads of one process.
  virtual bool shares_process() const { return false; }
  virtual Shard shard() const = 0;

  /// Replaces each value by its sum over the processes; all processes get the same bits.
  virtual void sum(std::span<double> values) = 0;
  /// The same for gradients.
  virtual void sum_gradients(std::span<float> values) = 0;
  /// True if another process has failed. Waiting for it on the device would then never end.
  virtual bool abandoned() { return false; }
  /// Divides `all` into one part of mine.size() bytes for each process and fills part r with the bytes of process r.
  virtual void gather_gradients(std::span<const std::uint8_t> mine, std::span<std::uint8_t> all) = 0;
};

/// The function that the MPI module exports.
using MakeCommunicator = Communicator* (*)();
inline constexpr const char* kMakeCommunicator = "ganymede_make_communicator";

/// Number of processes that a launcher (mpirun, srun) started of this program; 1 without a launcher.
int launched_processes();

/// This process's number among those on this machine, by which it chooses its GPU; 0 without a launcher.
int local_rank();
/// Index of the GPU that this process takes of the `visible` ones. A scheduler may show each process all GPUs of the
/// machine, or only its own as the first.
int gpu_of_process(int visible);
/// The share of `processors`, which the launcher may use, that this process takes: of those that it may use itself,
/// `usable`, no more than its part where a launcher started several processes on this machine.
int cores_of_process(int processors, int usable);
/// The cores that the program which started the launched processes may use; those of this process without one. A
/// launcher that binds its processes may use more than each of them.
int cores_of_launcher();

/// The communicator of the processes that the launcher started; null for one process. Throws ConfigError if there are
/// several and the MPI module cannot be loaded.
std::unique_ptr<Communicator> open_communicator();

// The processes of one training must be started alike.

/// The options that all processes must share, each by its name, in the same order in all of them.
using NamedValues = std::vector<std::pair<std::string, std::string>>;

/// Throws ConfigError in all processes if one has another value than rank 0: they would compute different things, or
/// wait for one another for ever. The message names the option and a process.
void check_same_values(const NamedValues& values, Communicator& communicator);

}  // namespace ganymede::kernel
