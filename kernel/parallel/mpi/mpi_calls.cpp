#include "kernel/parallel/mpi/mpi_calls.hpp"

#include <fmt/format.h>

#include <exception>
#include <vector>

#include "common/errors.hpp"

namespace ganymede::kernel {

void check_mpi(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  std::vector<char> text(MPI_MAX_ERROR_STRING);
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  throw Failure(fmt::format("{}: {}", call, std::string(text.data(), static_cast<std::size_t>(length))));
}

std::string mpi_name() {
  std::vector<char> text(MPI_MAX_LIBRARY_VERSION_STRING);
  int length = 0;
  MPI_Get_library_version(text.data(), &length);
  const std::string all(text.data(), static_cast<std::size_t>(length));
  return "MPI: " + all.substr(0, all.find(','));
}

MpiSession::MpiSession(int threads) : exceptions_(std::uncaught_exceptions()) {
  int provided = 0;
  check_mpi(MPI_Init_thread(nullptr, nullptr, threads, &provided), "MPI_Init_thread");
  if (provided < threads)
    throw ConfigError("this MPI lets only one thread call it; gradients are reduced beside the backward pass");
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
}

MpiSession::~MpiSession() {
  if (!failing()) MPI_Finalize();
}

bool MpiSession::failing() const { return std::uncaught_exceptions() > exceptions_; }

}  // namespace ganymede::kernel
