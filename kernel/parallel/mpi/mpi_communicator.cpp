// Communication between processes that an MPI launcher started, and messages between them. It is a module that is
// loaded only if there are several processes, so that a single process needs no MPI and starts quickly.

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "kernel/parallel/communicator.hpp"
#include "kernel/parallel/messenger.hpp"
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

class MpiMessenger final : public Messenger {
 public:
  MpiMessenger() : session_(MPI_THREAD_SINGLE) {
    check_mpi(MPI_Comm_rank(MPI_COMM_WORLD, &rank_), "MPI_Comm_rank");
    check_mpi(MPI_Comm_size(MPI_COMM_WORLD, &ranks_), "MPI_Comm_size");
    MPI_Comm here = MPI_COMM_NULL;
    int ranks_here = 1;
    check_mpi(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &here),
              "MPI_Comm_split_type");
    check_mpi(MPI_Comm_size(here, &ranks_here), "MPI_Comm_size");
    MPI_Comm_free(&here);
    naps_ = ranks_here > ::sysconf(_SC_NPROCESSORS_ONLN);
  }

  std::string name() const override { return mpi_name(); }
  int rank() const override { return rank_; }
  int ranks() const override { return ranks_; }

  Message send(std::span<const std::byte> bytes, int to, int tag) override {
    const Message message = free_message();
    check_mpi(
        MPI_Isend(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, to, tag, MPI_COMM_WORLD, &requests_[message]),
        "MPI_Isend");
    return message;
  }
  Message receive(std::span<std::byte> bytes, int from, int tag) override {
    const Message message = free_message();
    check_mpi(MPI_Irecv(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, from, tag, MPI_COMM_WORLD,
                        &requests_[message]),
              "MPI_Irecv");
    return message;
  }
  bool done(Message message) override {
    int flag = 0;
    check_mpi(MPI_Test(&requests_[message], &flag, MPI_STATUS_IGNORE), "MPI_Test");
    if (flag != 0) free_.push_back(message);
    return flag != 0;
  }
  // MPI makes progress only inside its calls, so this returns at once, or soon if others need the processor.
  void wait(double seconds) override {
    if (naps_)
      std::this_thread::sleep_for(std::chrono::duration<double>(std::min(seconds, kNap)));
    else
      std::this_thread::yield();
  }
  void rest(double seconds) override { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

 private:
  static constexpr double kNap = 20e-6;  // seconds; a message that arrives meanwhile is seen so much later

  Message free_message() {
    if (free_.empty()) {
      requests_.push_back(MPI_REQUEST_NULL);
      return requests_.size() - 1;
    }
    const Message message = free_.back();
    free_.pop_back();
    return message;
  }

  MpiSession session_;
  int rank_ = 0, ranks_ = 1;
  bool naps_ = false;  // more processes than processors are here
  std::vector<MPI_Request> requests_;
  std::vector<Message> free_;
};

}  // namespace
}  // namespace ganymede::kernel

extern "C" ganymede::kernel::Communicator* ganymede_make_communicator() {
  return new ganymede::kernel::MpiCommunicator;
}
extern "C" ganymede::kernel::Messenger* ganymede_make_messenger() { return new ganymede::kernel::MpiMessenger; }
