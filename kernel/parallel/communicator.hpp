#pragma once
// The processes of one data-parallel training. Each has a replica of the model and its share of every batch.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace ganymede::kernel {

/// A process's place among those of a training: it has the images [rank * batch, (rank + 1) * batch) of each step's,
/// and takes its share of random numbers that all draw alike.
struct Shard {
  int rank = 0, ranks = 1;
};

/// Every call is made by all processes, in the same order. The calls "of gradients" may go on beside the others: they
/// are made by a thread of their own. Failure when the network fails.
class Communicator {
 public:
  Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  virtual ~Communicator() = default;

  virtual std::string name() const = 0;  ///< "MPI (Open MPI 4.1.4)"
  virtual Shard shard() const = 0;

  /// Each value becomes the sum over the processes, the same bits in all.
  virtual void sum(std::span<double> values) = 0;
  virtual void sum_gradients(std::span<float> values) = 0;
  /// Whether another has failed, so that whoever waits for it elsewhere need not wait for ever.
  virtual bool abandoned() { return false; }
  /// all[r] of equal parts = what process r gives.
  virtual void gather_gradients(std::span<const std::uint8_t> mine, std::span<std::uint8_t> all) = 0;
};

/// What the module of processes exports.
using MakeCommunicator = Communicator* (*)();
inline constexpr const char* kMakeCommunicator = "ganymede_make_communicator";

/// How many processes a launcher (mpirun, srun) started this program as; 1 without one.
int launched_processes();

/// Of the processes on this machine, which this is; 0 without a launcher. Each takes a GPU of its own.
int local_rank();

/// Null for one process. ConfigError when the program was started as several and cannot talk to them.
std::unique_ptr<Communicator> open_communicator();

}  // namespace ganymede::kernel
