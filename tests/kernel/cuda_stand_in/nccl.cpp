// The stand-in's NCCL: all-reduces and all-gathers between the GPUs of the machine, and messages, which may also go to
// other processes.

#include <nccl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
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
  /// Has a file for each message that is under way, by the ranks and its number.
  std::filesystem::path folder;
  bool of_processes = false;  ///< the folder also has a file for each rank that has joined, and for each that has left

  ~Clique() {
    std::error_code ignored;
    if (!folder.empty() && !of_processes) std::filesystem::remove_all(folder, ignored);
  }
  /// Notes that a rank has joined or left.
  void note(const char* what, int rank, int& count) {
    ++count;
    if (of_processes) std::ofstream(folder / fmt::format("{}-{}", what, rank));
  }
  bool all(const char* what, int count) const {
    bool noted = of_processes;
    for (int rank = 0; noted && rank < ranks; ++rank)
      noted = std::filesystem::exists(folder / fmt::format("{}-{}", what, rank));
    return noted || count >= ranks;
  }
};

struct CommState {
  std::shared_ptr<Clique> clique;
  int rank, device;
  bool blocks;
  std::size_t next_round = 0;
  bool aborted = false, finalized = false, has_work = false;
  std::map<int, std::size_t> sent = {}, received = {};  ///< messages so far, by peer
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
  if (!clique.all("joined", clique.joined)) return ncclInProgress;
  if (comm.finalized) {
    here.advance_all();
    return clique.all("left", clique.left) ? ncclSuccess : ncclInProgress;
  }
  // The thread that starts an operation is done at the second look.
  return std::exchange(comm.has_work, false) ? ncclInProgress : ncclSuccess;
}

void leave(CommState& comm) {
  if (!std::exchange(comm.finalized, true)) comm.clique->note("left", comm.rank, comm.clique->left);
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

/// A message that a group sends or receives.
struct Message {
  const char* name;
  CommState* comm;
  StreamState* stream;
  void* at;
  std::size_t bytes;
  int peer;
  bool is_sent;

  bool overlaps(const Message& other) const {
    return static_cast<std::byte*>(at) < static_cast<std::byte*>(other.at) + other.bytes &&
           static_cast<std::byte*>(other.at) < static_cast<std::byte*>(at) + bytes;
  }
};
thread_local int open_groups = 0;
thread_local std::vector<Message> group;

/// A message that is under way.
struct Letter {
  Message message;
  std::filesystem::path file;
  bool done = false;

  void send() const {
    const std::filesystem::path unfinished = file.string() + ".tmp";
    std::ofstream(unfinished, std::ios::binary)
        .write(static_cast<const char*>(message.at), static_cast<std::streamsize>(message.bytes));
    std::filesystem::rename(unfinished, file);
  }
  /// A send has ended when its receiver has taken it, as with NCCL where its buffers are full.
  void look(Machine& here) {
    if (done || std::filesystem::exists(file) == message.is_sent) return;
    done = true;
    if (message.is_sent) return;
    if (std::filesystem::file_size(file) != message.bytes)
      here.violate("a message has another length than is expected");
    std::ifstream(file, std::ios::binary)
        .read(static_cast<char*>(message.at), static_cast<std::streamsize>(message.bytes));
    std::filesystem::remove(file);
  }
};

/// Adds the messages of the group to the stream as one operation, which ends when all of them have.
ncclResult_t begin_messages(Machine& here) {
  const std::vector<Message> messages = std::exchange(group, {});
  if (messages.empty()) return ncclSuccess;
  CommState* comm = messages.front().comm;
  Op op{"ncclGroupEnd", {}, {}};
  for (const Message& one : messages) {
    if (one.comm != comm || one.stream != messages.front().stream) here.violate("a group is on several streams");
    for (const Message& other : messages)
      if (one.is_sent && !other.is_sent && one.overlaps(other)) here.violate("a group receives into what it sends");
    op.words.push_back(reinterpret_cast<std::uintptr_t>(one.at));
  }
  op.run = [&here, comm, messages, letters = std::vector<Letter>{}]() mutable {
    if (comm->aborted) return true;
    if (here.network_is_broken) return false;
    for (std::size_t i = letters.size(); i < messages.size(); ++i) {
      const Message& one = messages[i];
      const int from = one.is_sent ? comm->rank : one.peer, to = one.is_sent ? one.peer : comm->rank;
      const std::size_t number = (one.is_sent ? comm->sent : comm->received)[one.peer]++;
      letters.push_back({one, comm->clique->folder / fmt::format("{}-{}-{}", from, to, number)});
      if (one.is_sent) letters.back().send();
    }
    for (Letter& letter : letters) letter.look(here);
    return std::all_of(letters.begin(), letters.end(), [](const Letter& letter) { return letter.done; });
  };
  StreamState& stream = *messages.front().stream;
  if (stream.capture != nullptr) op.keeps = comm->graphs;
  op.is_launch = true;
  here.push(stream, std::move(op));
  comm->has_work = !comm->blocks;
  return comm->blocks ? ncclSuccess : ncclInProgress;
}

ncclResult_t add_message(const char* name, const void* at, std::size_t count, ncclDataType_t type, int peer,
                         ncclComm_t handle, cudaStream_t on, bool is_sent) {
  return nccl_call(name, [&](Machine& here, auto&) {
    auto* comm = here.use<CommState>(handle, "communicator");
    auto* stream = here.use<StreamState>(on, "stream");
    if (comm == nullptr || stream == nullptr || type != ncclFloat) return ncclInvalidArgument;
    if (peer < 0 || peer >= comm->clique->ranks || peer == comm->rank) return ncclInvalidArgument;
    if (group.empty() && !comm->blocks && state_of(here, *comm) == ncclInProgress)
      here.violate("NCCL is called while it is busy");
    here.check_range(at, count * sizeof(float), comm->device, name);
    group.push_back({name, comm, stream, const_cast<void*>(at), count * sizeof(float), peer, is_sent});
    return open_groups > 0 ? ncclSuccess : begin_messages(here);
  });
}

}  // namespace
}  // namespace ganymede::kernel::stand_in

using namespace ganymede::kernel::stand_in;

const char* ncclGetErrorString(ncclResult_t) { return "a result of the stand-in"; }

ncclResult_t ncclGetUniqueId(ncclUniqueId* to) {
  return nccl_call("ncclGetUniqueId", [&](Machine&, auto&) {
    static int made = 0;
    // Where this is set, ranks may be processes.
    const char* folder = std::getenv("GANYMEDE_STAND_IN_NCCL");
    std::string text = fmt::format("id {}", ++made);
    if (folder != nullptr) text = fmt::format("{}/{}-{}", folder, ::getpid(), made);
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
    if (clique->folder.empty()) {
      clique->of_processes = id.internal[0] == '/';
      clique->folder = clique->of_processes ? std::filesystem::path(id.internal)
                                            : std::filesystem::temp_directory_path() /
                                                  fmt::format("ganymede-stand-in-{} {}", ::getpid(), id.internal);
      std::filesystem::create_directories(clique->folder);
    }
    clique->note("joined", rank, clique->joined);
    ++here.progress;
    CommState* comm = here.make("communicator", CommState{clique, rank, current_device(), config->blocking != 0});
    *to = reinterpret_cast<ncclComm_t>(comm);
    if (!comm->blocks) return ncclInProgress;
    return here.wait(lock, "ncclCommInitRank", [&] { return comm->clique->all("joined", comm->clique->joined); })
               ? ncclSuccess
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

ncclResult_t ncclSend(const void* from, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t on) {
  return add_message("ncclSend", from, count, type, peer, comm, on, true);
}
ncclResult_t ncclRecv(void* to, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t on) {
  return add_message("ncclRecv", to, count, type, peer, comm, on, false);
}
ncclResult_t ncclGroupStart() {
  return nccl_call("ncclGroupStart", [&](Machine&, auto&) { return ++open_groups, ncclSuccess; });
}
ncclResult_t ncclGroupEnd() {
  return nccl_call("ncclGroupEnd", [&](Machine& here, auto&) {
    if (open_groups == 0) return ncclInvalidUsage;
    return --open_groups == 0 ? begin_messages(here) : ncclSuccess;
  });
}
ncclResult_t ncclGetVersion(int* version) {
  return nccl_call("ncclGetVersion", [&](Machine&, auto&) { return *version = 22602, ncclSuccess; });
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
        // Its part of unfinished reductions is gone, and the others wait for ever.
        for (auto& [number, round] : comm->clique->rounds)
          if (!round.done) round.parts.erase(comm->rank);
        end_comm(here, *comm, "ncclCommAbort");
        return ncclSuccess;
      },
      true);
}
