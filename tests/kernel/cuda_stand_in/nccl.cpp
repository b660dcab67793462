// The stand-in's NCCL: all-reduces and all-gathers between the GPUs of the machine.

#include <nccl.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "machine.hpp"

namespace ganymede::kernel::stand_in {
namespace {

/// One operation: what each rank brings.
struct Round {
  struct Part {
    const char* name;
    const void* from;
    void* to;
    std::size_t bytes;
    bool captured;

    bool fits(const Part& other) const {
      return name == other.name && bytes == other.bytes && captured == other.captured;
    }
  };
  std::map<int, Part> parts;
  bool done = false;
};

/// The communicators that were made with one id.
struct Clique {
  int ranks = 0, joined = 0, left = 0;
  std::map<std::size_t, Round> rounds;
};

struct CommState {
  std::shared_ptr<Clique> clique;
  int rank, device;
  bool blocks;
  std::size_t next_round = 0;
  bool aborted = false, finalized = false, has_work = false;
  /// Each captured operation holds a copy, as NCCL's persistent plans hold references.
  std::shared_ptr<int> graphs = std::make_shared<int>(0);
};

std::map<std::string, std::shared_ptr<Clique>> cliques;

template <class Body>
ncclResult_t nccl_call(const char* name, const Body& body, bool ends = false) {
  return call(name, ncclSystemError, body, ends);
}

void average(const Round& round) {
  const auto& first = round.parts.begin()->second;
  std::vector<float> means(first.bytes / sizeof(float));
  for (const auto& [rank, part] : round.parts)
    for (std::size_t i = 0; i < means.size(); ++i) means[i] += static_cast<const float*>(part.from)[i];
  for (float& mean : means) mean /= static_cast<float>(round.parts.size());
  for (const auto& [rank, part] : round.parts) std::memcpy(part.to, means.data(), part.bytes);
}

void exchange(const Round& round) {
  for (const auto& [receiver, to] : round.parts)
    for (const auto& [sender, from] : round.parts)
      std::memcpy(static_cast<std::byte*>(to.to) + static_cast<std::size_t>(sender) * from.bytes, from.from,
                  from.bytes);
}

/// The state of what the communicator has begun.
ncclResult_t state_of(Machine& here, CommState& comm) {
  const Clique& clique = *comm.clique;
  if (here.network_is_broken) return ncclRemoteError;
  if (clique.joined < clique.ranks) return ncclInProgress;
  if (comm.finalized) {
    here.advance_all();
    return clique.left < clique.ranks ? ncclInProgress : ncclSuccess;
  }
  // The thread that starts an operation is done at the second look.
  return std::exchange(comm.has_work, false) ? ncclInProgress : ncclSuccess;
}

void leave(CommState& comm) {
  if (!std::exchange(comm.finalized, true)) ++comm.clique->left;
}

void end_comm(Machine& here, CommState& comm, const char* name) {
  here.advance_all();
  // The documentation: NCCL polls until all graphs that refer to the communicator are destroyed.
  if (comm.graphs.use_count() > 1)
    here.violate(fmt::format("{} never returns: a captured graph refers to the communicator", name));
  leave(comm);
}

/// Adds an operation to the stream. It is done when all ranks have brought their parts of it.
ncclResult_t begin_operation(Round::Part part, void (*complete)(const Round&), ncclComm_t handle, cudaStream_t on) {
  return nccl_call(part.name, [&](Machine& here, auto&) {
    auto* comm = here.use<CommState>(handle, "communicator");
    auto* stream = here.use<StreamState>(on, "stream");
    if (comm == nullptr || stream == nullptr) return ncclInvalidArgument;
    if (!comm->blocks && state_of(here, *comm) == ncclInProgress) here.violate("NCCL is called while it is busy");
    here.check_range(part.from, part.bytes, comm->device, part.name);
    const auto parts = complete == exchange ? static_cast<std::size_t>(comm->clique->ranks) : 1;
    here.check_range(part.to, part.bytes * parts, comm->device, part.name);
    part.captured = stream->capture != nullptr;
    const auto run = [&here, comm, part, complete, has_arrived = false, mine = std::size_t{0}]() mutable {
      if (comm->aborted) return true;
      if (here.network_is_broken) return false;
      if (!std::exchange(has_arrived, true)) {
        mine = comm->next_round++;
        comm->clique->rounds[mine].parts[comm->rank] = part;
      }
      Round& round = comm->clique->rounds[mine];
      if (round.done || round.parts.size() < static_cast<std::size_t>(comm->clique->ranks)) return round.done;
      round.done =
          std::all_of(round.parts.begin(), round.parts.end(), [&](const auto& one) { return one.second.fits(part); });
      if (round.done) complete(round);
      if (!round.done) here.violate("replicas do different operations together");
      return round.done;
    };
    Op op{part.name, run, {reinterpret_cast<std::uintptr_t>(part.from), reinterpret_cast<std::uintptr_t>(part.to)}};
    if (part.captured) op.keeps = comm->graphs;
    op.is_launch = true;
    here.push(*stream, std::move(op));
    comm->has_work = !comm->blocks;
    return comm->blocks ? ncclSuccess : ncclInProgress;
  });
}

}  // namespace
}  // namespace ganymede::kernel::stand_in

using namespace ganymede::kernel::stand_in;

const char* ncclGetErrorString(ncclResult_t) { return "a result of the stand-in"; }

ncclResult_t ncclGetUniqueId(ncclUniqueId* to) {
  return nccl_call("ncclGetUniqueId", [&](Machine&, auto&) {
    static int made = 0;
    const std::string text = fmt::format("id {}", ++made);
    std::memset(to->internal, 0, sizeof to->internal);
    std::memcpy(to->internal, text.data(), text.size());
    return ncclSuccess;
  });
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* to, int ranks, ncclUniqueId id, int rank, ncclConfig_t* config) {
  return nccl_call("ncclCommInitRankConfig", [&](Machine& here, auto& lock) {
    auto& clique = cliques[id.internal];
    if (clique == nullptr) clique = std::make_shared<Clique>();
    clique->ranks = ranks;
    ++clique->joined;
    ++here.progress;
    CommState* comm = here.make("communicator", CommState{clique, rank, current_device(), config->blocking != 0});
    *to = reinterpret_cast<ncclComm_t>(comm);
    if (!comm->blocks) return ncclInProgress;
    return here.wait(lock, "ncclCommInitRank", [&] { return comm->clique->joined == ranks; }) ? ncclSuccess
                                                                                              : ncclSystemError;
  });
}
ncclResult_t ncclCommInitRank(ncclComm_t* to, int ranks, ncclUniqueId id, int rank) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  return ncclCommInitRankConfig(to, ranks, id, rank, &config);
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t handle, ncclResult_t* state) {
  return nccl_call("ncclCommGetAsyncError", [&](Machine& here, auto&) {
    auto* comm = here.use<CommState>(handle, "communicator");
    if (comm == nullptr) return ncclInvalidArgument;
    *state = state_of(here, *comm);
    return *state == ncclInProgress && here.is_stuck("ncclCommGetAsyncError") ? ncclSystemError : ncclSuccess;
  });
}

ncclResult_t ncclAllReduce(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclRedOp_t operation,
                           ncclComm_t comm, cudaStream_t on) {
  if (type != ncclFloat || operation != ncclAvg) return ncclInvalidArgument;
  return begin_operation({"ncclAllReduce", from, to, count * sizeof(float), false}, average, comm, on);
}
ncclResult_t ncclAllGather(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t on) {
  if (type != ncclUint8) return ncclInvalidArgument;
  return begin_operation({"ncclAllGather", from, to, count, false}, exchange, comm, on);
}

ncclResult_t ncclCommFinalize(ncclComm_t handle) {
  return nccl_call("ncclCommFinalize", [&](Machine& here, auto&) {
    auto* comm = here.use<CommState>(handle, "communicator");
    if (comm == nullptr) return ncclInvalidArgument;
    end_comm(here, *comm, "ncclCommFinalize");
    return comm->blocks ? ncclSuccess : ncclInProgress;
  });
}
ncclResult_t ncclCommDestroy(ncclComm_t handle) {
  return nccl_call(
      "ncclCommDestroy",
      [&](Machine& here, auto&) {
        auto* comm = here.destroy<CommState>(handle, "communicator");
        if (comm == nullptr) return ncclInvalidArgument;
        end_comm(here, *comm, "ncclCommDestroy");
        return ncclSuccess;
      },
      true);
}
ncclResult_t ncclCommAbort(ncclComm_t handle) {
  return nccl_call(
      "ncclCommAbort",
      [&](Machine& here, auto&) {
        auto* comm = here.destroy<CommState>(handle, "communicator");
        if (comm == nullptr) return ncclInvalidArgument;
        comm->aborted = true;
        // What it has brought to unfinished reductions is gone, and the others wait for ever.
        for (auto& [number, round] : comm->clique->rounds)
          if (!round.done) round.parts.erase(comm->rank);
        end_comm(here, *comm, "ncclCommAbort");
        return ncclSuccess;
      },
      true);
}
