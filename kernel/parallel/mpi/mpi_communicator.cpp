// Communication between processes that an MPI launcher started. It is a module that is loaded only if there are several
// processes, so that a single process needs no MPI and starts quickly.

#include "kernel/parallel/communicator.hpp"
#include "kernel/parallel/mpi/mpi_calls.hpp"

namespace ganymede::kernel {
namespace {

class MpiCommunicator final : public Communicator {
 public:
  MpiCommunicator() : session_(MPI_THREAD_MULTIPLE) {
    check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &gradients_), "MPI_Comm_dup");
    check_mpi(MPI_Comm_rank(MPI_COMM_WORLD, &shard_.rank), "MPI_Comm_rank");
    check_mpi(MPI_Comm_size(MPI_COMM_WORLD, &shard_.ranks), "MPI_Comm_size");
  }
  ~MpiCommunicator() override {
    if (!session_.failing()) MPI_Comm_free(&gradients_);
  }

  std::string name() const override { return mpi_name(); }
  Shard shard() const override { return shard_; }

  void sum(std::span<double> values) override {
    check_mpi(MPI_Allreduce(MPI_IN_PLACE, values.data(), count(values.size()), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD),
              "MPI_Allreduce");
  }
  void sum_gradients(std::span<float> values) override {
    check_mpi(MPI_Allreduce(MPI_IN_PLACE, values.data(), count(values.size()), MPI_FLOAT, MPI_SUM, gradients_),
              "MPI_Allreduce");
  }
  void gather_gradients(std::span<const std::uint8_t> mine, std::span<std::uint8_t> all) override {
    check_mpi(
        MPI_Allgather(mine.data(), count(mine.size()), MPI_BYTE, all.data(), count(mine.size()), MPI_BYTE, gradients_),
        "MPI_Allgather");
  }

 private:
  static int count(std::size_t size) { return static_cast<int>(size); }

  MpiSession session_;
  Shard shard_;
  MPI_Comm gradients_ = MPI_COMM_NULL;
};

}  // namespace
}  // namespace ganymede::kernel

extern "C" ganymede::kernel::Communicator* ganymede_make_communicator() {
  return new ganymede::kernel::MpiCommunicator;
}
