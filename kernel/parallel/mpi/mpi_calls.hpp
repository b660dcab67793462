#pragma once
// Calls that the classes of the MPI module share.

#include <mpi.h>

#include <string>

namespace ganymede::kernel {

/// Throws Failure with MPI's text unless `code` is MPI_SUCCESS; `call` names the function that returned it.
void check_mpi(int code, const char* call);

/// The library's name and version, for example "MPI: Open MPI v4.1.4".
std::string mpi_name();

/// Initialises MPI, so that errors are returned, and finalises it, unless an exception is on its way: after an error
/// the other processes may wait for messages that will not come. The launcher ends them if this process ends without
/// MPI_Finalize, after the program has printed the error.
class MpiSession {
 public:
  /// `threads`: MPI_THREAD_MULTIPLE and so on. Throws ConfigError if this MPI does not provide it.
  explicit MpiSession(int threads);
  ~MpiSession();
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

  /// True if an exception that was thrown since construction is on its way.
  bool failing() const;

 private:
  int exceptions_;
};

}  // namespace ganymede::kernel
