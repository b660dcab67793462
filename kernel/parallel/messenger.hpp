#pragma once
// Messages between processes, for programs that execute a schedule of their own in place of a library's collective.

#include <cstddef>
#include <memory>
#include <span>
#include <string>

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

}  // namespace ganymede::kernel
