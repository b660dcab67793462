#pragma once
// Communication between the processes of one data-parallel training. Each has a replica of the model and an equal part
// of every batch.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ganymede::kernel {

/// Sends and receives between the processes of one program, numbered from 0. Nothing here blocks: a call starts a
/// message, and done() both drives all messages and says whether one has ended. Messages from one process to another
/// with the same tag arrive in the order in which they were sent. Used by one thread. All functions throw Failure if
/// the network fails.
class Messenger {
 public:
  using Message = std::size_t;  ///< a number that is free again once done() has returned true for it

  Messenger() = default;
  Messenger(const Messenger&) = delete;
  Messenger& operator=(const Messenger&) = delete;
  virtual ~Messenger() = default;

  virtual std::string name() const = 0;  ///< for example "MPI: Open MPI v4.1.4"
  virtual int rank() const = 0;
  virtual int ranks() const = 0;

  /// Starts to send; the bytes must stay as they are until done(). A send is done when its bytes may change, which does
  /// not mean that they have arrived. Precondition: 0 <= tag < 32768, at most 2^31 - 1 bytes.
  virtual Message send(std::span<const std::byte> bytes, int to, int tag) = 0;
  /// Starts to receive a message of exactly so many bytes.
  virtual Message receive(std::span<std::byte> bytes, int from, int tag) = 0;
  virtual bool done(Message message) = 0;
  /// Returns when something may have happened, after `seconds` at the latest.
  virtual void wait(double seconds) = 0;
  /// The same for a process that expects no message: others may have its processor meanwhile.
  virtual void rest(double seconds) = 0;
};

/// The function that the MPI module exports.
using MakeMessenger = Messenger* (*)();
inline constexpr const char* kMakeMessenger = "ganymede_make_messenger";

/// The messenger of the processes that a launcher started; null for one process. Throws ConfigError if there are
/// several and the MPI module cannot be loaded.
std::unique_ptr<Messenger> open_messenger();

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
