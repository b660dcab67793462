// Communication between processes that an MPI launcher started. It is a module that is loaded only if there are several
// processes, so that a single process needs no MPI and starts quickly.

#include <fmt/format.h>
#include <mpi.h>

#include <exception>
#include <vector>

#include "common/errors.hpp"
#include "kernel/parallel/communicator.hpp"

namespace ganymede::kernel {
namespace {

void check(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  std::vector<char> text(MPI_MAX_ERROR_STRING);
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  throw Failure(fmt::format("{}: {}", call, std::string(text.data(), static_cast<std::size_t>(length))));
}

class MpiCommunicator final : public Communicator {
 public:
  MpiCommunicator() : exceptions_(std::uncaught_exceptions()) {
    int provided = 0;
    check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided), "MPI_Init_thread");
    if (provided < MPI_THREAD_MULTIPLE)
      throw ConfigError("this MPI lets only one thread call it; gradients are reduced beside the backward pass");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    check(MPI_Comm_dup(MPI_COMM_WORLD, &gradients_), "MPI_Comm_dup");
    check(MPI_Comm_rank(MPI_COMM_WORLD, &shard_.rank), "MPI_Comm_rank");
    check(MPI_Comm_size(MPI_COMM_WORLD, &shard_.ranks), "MPI_Comm_size");
  }
  ~MpiCommunicator() override {
    // After an error the other processes may wait for messages that will not come. The launcher ends them if this
    // process ends without MPI_Finalize, after the program has printed the error.
    if (std::uncaught_exceptions() > exceptions_) return;
    MPI_Comm_free(&gradients_);
    MPI_Finalize();
  }

  std::string name() const override {
    std::vector<char> text(MPI_MAX_LIBRARY_VERSION_STRING);
    int length = 0;
    MPI_Get_library_version(text.data(), &length);
    const std::string all(text.data(), static_cast<std::size_t>(length));
    return "MPI: " + all.substr(0, all.find(','));
  }
  Shard shard() const override { return shard_; }

  void sum(std::span<double> values) override {
    check(MPI_Allreduce(MPI_IN_PLACE, values.data(), count(values.size()), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD),
          "MPI_Allreduce");
  }
  void sum_gradients(std::span<float> values) override {
    check(MPI_Allreduce(MPI_IN_PLACE, values.data(), count(values.size()), MPI_FLOAT, MPI_SUM, gradients_),
          "MPI_Allreduce");
  }
  void gather_gradients(std::span<const std::uint8_t> mine, std::span<std::uint8_t> all) override {
    check(
        MPI_Allgather(mine.data(), count(mine.size()), MPI_BYTE, all.data(), count(mine.size()), MPI_BYTE, gradients_),
        "MPI_Allgather");
  }

 private:
  static int count(std::size_t size) { return static_cast<int>(size); }

  int exceptions_;
  Shard shard_;
  MPI_Comm gradients_ = MPI_COMM_NULL;
};

}  // namespace
}  // namespace ganymede::kernel

extern "C" ganymede::kernel::Communicator* ganymede_make_communicator() {
  return new ganymede::kernel::MpiCommunicator;
}
