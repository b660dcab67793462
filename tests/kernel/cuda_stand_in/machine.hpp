#pragma once
// The state of the stand-in: memory, streams with their queues, events, captured graphs.

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "stand_in.hpp"

namespace ganymede::kernel::stand_in {

/// Work on a stream. `run` returns false if it must wait for something.
struct Op {
  const char* name;
  std::function<bool()> run;
  std::vector<std::uintptr_t> words;  ///< words of its arguments; some are addresses
  std::shared_ptr<void> keeps = {};   ///< what lives while this work may still run
  bool is_launch = false;
};

struct Capture;

struct StreamState {
  int device;
  bool is_first;  ///< of its device
  std::deque<Op> queue = {};
  std::uint64_t pushed = 0, done = 0;
  Capture* capture = nullptr;  ///< not null: work is captured
};

struct EventState {
  StreamState* stream = nullptr;  ///< where it was recorded last; null: nowhere
  std::uint64_t position = 0;     ///< it happens when so much of the stream's work is done
  Capture* capture = nullptr;     ///< not null: it was recorded in this capture
  std::vector<std::size_t> nodes = {};
  bool is_timed = true, has_time = false;
  std::chrono::steady_clock::time_point time = {};
};

struct Node {
  Op op;
  std::vector<std::size_t> after;
  bool on_origin;
};

struct Capture {
  StreamState* origin;
  std::vector<Node> nodes = {};
  std::map<StreamState*, std::vector<std::size_t>> tails = {};  ///< the last nodes of each stream
};

struct GraphState {
  std::vector<Node> nodes;
};

/// A piece of memory between two pages that nobody may touch.
struct Block {
  void* mapping;
  std::size_t mapped_bytes, bytes;
  int device;  ///< -1: pinned memory of the host
  bool is_live = true;
};

class Machine {
 public:
  explicit Machine(const Settings& asked) : settings(asked), calls(static_cast<std::size_t>(asked.devices)) {}
  ~Machine();

  void violate(const std::string& what) { violations.push_back(what); }

  // ---- Handles: they stay known after their destruction, so that later uses are noticed ----
  template <class State>
  State* make(const char* kind, State state) {
    auto made = std::make_shared<State>(std::move(state));
    handles[made.get()] = {kind, true, made};
    return made.get();
  }
  template <class State>
  State* use(const void* handle, const char* kind) {
    const auto found = handles.find(handle);
    if (found != handles.end() && found->second.is_live && std::string(found->second.kind) == kind)
      return static_cast<State*>(found->second.state.get());
    violate(fmt::format("a {} is used that is not there", kind));
    return nullptr;
  }
  template <class State>
  State* destroy(const void* handle, const char* kind) {
    State* state = use<State>(handle, kind);
    if (state != nullptr) handles[handle].is_live = false;
    return state;
  }

  // ---- Memory ----
  void* allocate(std::size_t bytes, int device);
  bool release(void* memory, bool is_pinned);
  /// The block that an address is in, or belonged to; null: none.
  const Block* block_of(std::uintptr_t address) const;
  /// Checks that [memory, memory + bytes) is live memory of this device (-1: pinned).
  bool check_range(const void* memory, std::size_t bytes, int device, const char* what);
  /// Checks the addresses among an operation's words.
  void check_words(const Op& op, int device);
  std::size_t used_bytes(int device) const;

  // ---- Streams ----
  void push(StreamState& stream, Op op);
  /// Runs the stream's work up to `position`. False if some must wait for another GPU.
  bool advance(StreamState& stream, std::uint64_t position);
  void advance_all();
  /// Waits until `reached` is true; other threads may bring that about. False if it never is.
  bool wait(std::unique_lock<std::mutex>& lock, const char* name, const std::function<bool()>& reached);
  /// True, and a violation, if a caller has looked for long for what never comes.
  bool is_stuck(const char* name);
  std::vector<StreamState*> streams() const;

  struct Handle {
    const char* kind;
    bool is_live;
    std::shared_ptr<void> state;
  };
  Settings settings;
  std::vector<int> calls;  ///< by device
  std::string failed_call;
  std::vector<std::string> violations;
  std::map<const void*, Handle> handles;
  std::map<std::uintptr_t, Block> blocks;  ///< by the address of the first byte
  std::size_t slots = 0;                   ///< of 4 GiB of addresses that blocks have taken
  std::size_t launches = 0, launches_together = 0, graph_nodes = 0, tensor_core_convolutions = 0,
              fused_convolutions = 0, compiled_plans = 0;
  bool network_is_broken = false;
  std::uint64_t progress_seen = 0;  ///< by is_stuck()
  std::chrono::steady_clock::time_point since = {};
  std::uint64_t progress = 0;  ///< grows when work is done
};

/// The machine between begin() and end(), with the lock that all calls take.
Machine& machine();
std::mutex& machine_mutex();
std::condition_variable& machine_changed();
/// Multiprocessors of each GPU, and the blocks of a cooperative launch that each of them holds.
inline constexpr int kMultiprocessors = 16, kBlocksTogether = 4;
/// This thread's state, as in CUDA's runtime.
int& current_device();
cudaError_t& last_error();

/// Adds kernels and other computations to a stream.
cudaError_t launch(const char* name, cudaStream_t stream, std::function<void()> work,
                   std::vector<std::uintptr_t> words);

/// Counts a call and runs `body` unless this call is to fail. `ends`: the call destroys something, which it does even
/// if it reports an error.
template <class Status, class Body>
Status call(const char* name, Status failure, const Body& body, bool ends = false) {
  std::unique_lock lock(machine_mutex());
  Machine& here = machine();
  const bool fails = ++here.calls[static_cast<std::size_t>(current_device())] == here.settings.failing_call &&
                     current_device() == here.settings.failing_device;
  if (fails) here.failed_call = name;
  const Status status = fails && !ends ? failure : body(here, lock);
  machine_changed().notify_all();
  return fails ? failure : status;
}

/// A call of the runtime; its error is also what cudaGetLastError returns next.
template <class Body>
cudaError_t runtime_call(const char* name, const Body& body, bool ends = false) {
  const cudaError_t status = call(name, cudaErrorUnknown, body, ends);
  if (status != cudaSuccess && status != cudaErrorNotReady) last_error() = status;
  return status;
}

}  // namespace ganymede::kernel::stand_in
