// Communication between processes that an MPI launcher started. It is a module that is loaded only if there are several
// processes, so that a single process needs no MPI and starts quickly.

#include "kernel/parallel/communicator.hpp"
#include "kernel/parallel/mpi/mpi_calls.hpp"
#include "kernel/parallel/mpi/mpi_watch.hpp"

namespace ganymede::kernel {
namespace {

class MpiCommunicator final : public Communicator {
 public:
  MpiCommunicator() : session_(MPI_THREAD_MULTIPLE), watch_(MpiWatch::stated_patience()) {
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
    const MpiWatch::Waiting waiting(watch_, MpiWatch::Caller::values, "a sum over all ranks");
    check_mpi(MPI_Allreduce(MPI_IN_PLACE, values.data(), count(values.size()), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD),
              "MPI_Allreduce");
  }
  void sum_gradients(std::span<float> values) override {
    const MpiWatch::Waiting waiting(watch_, MpiWatch::Caller::gradients, "the sum of gradients");
    check_mpi(MPI_Allreduce(MPI_IN_PLACE, values.data(), count(values.size()), MPI_FLOAT, MPI_SUM, gradients_),
              "MPI_Allreduce");
  }
  void gather_gradients(std::span<const std::uint8_t> mine, std::span<std::uint8_t> all) override {
    const MpiWatch::Waiting waiting(watch_, MpiWatch::Caller::gradients, "the exchange of gradients");
    check_mpi(
        MPI_Allgather(mine.data(), count(mine.size()), MPI_BYTE, all.data(), count(mine.size()), MPI_BYTE, gradients_),
        "MPI_Allgather");
  }

 private:
  static int count(std::size_t size) { return static_cast<int>(size); }

  MpiSession session_;
  MpiWatch watch_;
  Shard shard_;
  MPI_Comm gradients_ = MPI_COMM_NULL;
};

}  // namespace
}  // namespace ganymede::kernel

extern "C" ganymede::kernel::Communicator* ganymede_make_communicator() {
  return new ganymede::kernel::MpiCommunicator;
}
