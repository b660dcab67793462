// Messages between GPUs by NCCL's ncclSend and ncclRecv.

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <thread>
#include <utility>

#include "kernel/ops/cuda/handles.hpp"
#include "kernel/ops/cuda/launch_shape.hpp"
#include "kernel/ops/cuda/portable.hpp"
#include "kernel/parallel/gpu_exchange.hpp"
#ifdef __CUDACC__
#include "kernel/ops/cuda/launches.hpp"
#else
#include "host_launches.hpp"  // of tests/kernel/cuda_stand_in
#endif

namespace ganymede::kernel::cuda {

/// A kernel's work on float i of a message.
struct AddFloat {
  float* mine;
  const float* theirs;
  GANYMEDE_DEVICE void operator()(std::size_t i) const { mine[i] += theirs[i]; }
};
struct TakeFloat {
  float* mine;
  const float* theirs;
  GANYMEDE_DEVICE void operator()(std::size_t i) const { mine[i] = theirs[i]; }
};

namespace {

static_assert(sizeof(ncclUniqueId) == sizeof(GpuExchangeId));

using DeviceMemory = Owned<void*, cudaFree>;

DeviceMemory allocate_floats(std::size_t floats) {
  return made_by<DeviceMemory>("cudaMalloc", [&](void** memory) {
    return cudaMalloc(memory, std::max<std::size_t>(1, floats) * sizeof(float));
  });
}

bool overlap(const GpuTransfer& a, const GpuTransfer& b) {
  return a.offset < b.offset + b.floats && b.offset < a.offset + a.floats;
}

/// True if a message must not arrive in the buffer itself: it is added, or this round also sends what is there.
bool waits_elsewhere(const GpuRound& round, const GpuTransfer& receive) {
  return receive.reduce || std::any_of(round.sends.begin(), round.sends.end(),
                                       [&](const GpuTransfer& send) { return overlap(send, receive); });
}

class NcclExchange final : public GpuExchange {
 public:
  explicit NcclExchange(const GpuExchangeOptions& options) : exceptions_(std::uncaught_exceptions()) {
    GANYMEDE_CUDA(cudaSetDevice(options.device));
    cudaDeviceProp properties;
    GANYMEDE_CUDA(cudaGetDeviceProperties(&properties, options.device));
    multiprocessors_ = properties.multiProcessorCount;
    int version = 0;
    GANYMEDE_CUDA(ncclGetVersion(&version));
    name_ = "NCCL " + std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
            std::to_string(version % 100) + ", " + properties.name;
    stream_ = make_stream();
    end_ = make_event();
    ncclUniqueId id;
    std::memcpy(&id, options.id.data(), sizeof id);
    // With a communicator that blocks, this rank would wait for ever for one that has died.
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    note(ncclCommInitRankConfig(&nccl_, options.ranks, id, options.rank, &config), "ncclCommInitRankConfig");
  }

  ~NcclExchange() override {
    // NCCL waits until no graph refers to the communicator, even to abort it.
    graph_.reset();
    if (capturing_) {
      cudaGraph_t unfinished = nullptr;
      cudaStreamEndCapture(stream_.get(), &unfinished);
      const Graph destroyed(unfinished);
    }
    if (has_finalized())
      ncclCommDestroy(nccl_);
    else
      ncclCommAbort(nccl_);
  }

  std::string name() const override { return name_; }

  void plan(std::size_t floats, std::vector<GpuRound> rounds) override {
    graph_.reset();
    rounds_ = std::move(rounds);
    calls_ = 0;
    std::size_t most = 0;
    for (const GpuRound& round : rounds_) {
      std::size_t here = 0;
      for (const GpuTransfer& receive : round.receives)
        if (waits_elsewhere(round, receive)) here += receive.floats;
      most = std::max(most, here);
    }
    reserve(buffer_, floats);
    reserve(arrived_, most);
  }

  void write(std::span<const float> values) override {
    copy(buffer_.memory.get(), values.data(), values.size_bytes(), cudaMemcpyHostToDevice);
  }
  void read(std::span<float> values) override {
    copy(values.data(), buffer_.memory.get(), values.size_bytes(), cudaMemcpyDeviceToHost);
  }

  void start() override {
    round_ = 0;
    under_way_ = true;
    switch (calls_++) {
      case 0:
        return;  // NCCL opens connections, which waits for peers and must not be captured
      case 1:
        GANYMEDE_CUDA(cudaStreamBeginCapture(stream_.get(), cudaStreamCaptureModeRelaxed));
        capturing_ = true;
        return;
      default:
        launch();
    }
  }

  bool done() override {
    if (!settled()) return false;
    if (!under_way_) return true;
    while (round_ < rounds_.size()) {
      if (!exchanged_) {
        note(exchange(rounds_[round_]), "ncclGroupEnd");
        exchanged_ = true;
        if (!settled()) return false;
      }
      // Only now is NCCL's kernel on the stream, after which these come.
      add_what_arrived(rounds_[round_++]);
      exchanged_ = false;
    }
    if (capturing_) {
      capturing_ = false;
      const Graph graph = made_by<Graph>("cudaStreamEndCapture",
                                         [&](cudaGraph_t* made) { return cudaStreamEndCapture(stream_.get(), made); });
      graph_ = made_by<GraphExec>("cudaGraphInstantiate",
                                  [&](cudaGraphExec_t* made) { return cudaGraphInstantiate(made, graph.get(), 0); });
      launch();
    } else if (!marked_) {
      mark();
    }
    const cudaError_t state = cudaEventQuery(end_.get());
    if (state == cudaErrorNotReady) return false;
    check(state, "cudaEventQuery", __FILE__, __LINE__);
    under_way_ = marked_ = false;
    return true;
  }

  double seconds_of_adding(std::size_t floats) override {
    constexpr int kTimes = 10;
    const DeviceMemory mine = allocate_floats(floats), theirs = allocate_floats(floats);
    for (void* memory : {mine.get(), theirs.get()})
      GANYMEDE_CUDA(cudaMemsetAsync(memory, 0, floats * sizeof(float), stream_.get()));
    const Event begin = make_timed_event(), end = make_timed_event();
    const AddFloat add{static_cast<float*>(mine.get()), static_cast<const float*>(theirs.get())};
    each(floats, add);  // loads the kernel
    GANYMEDE_CUDA(cudaEventRecord(begin.get(), stream_.get()));
    for (int i = 0; i < kTimes; ++i) each(floats, add);
    GANYMEDE_CUDA(cudaEventRecord(end.get(), stream_.get()));
    GANYMEDE_CUDA(cudaStreamSynchronize(stream_.get()));
    float milliseconds = 0;
    GANYMEDE_CUDA(cudaEventElapsedTime(&milliseconds, begin.get(), end.get()));
    return 1e-3 * static_cast<double>(milliseconds) / kTimes;
  }

 private:
  struct Floats {
    DeviceMemory memory;
    std::size_t count = 0;
    float* at(std::size_t offset) const { return static_cast<float*>(memory.get()) + offset; }
  };

  static void reserve(Floats& floats, std::size_t count) {
    if (floats.memory != nullptr && floats.count >= count) return;
    floats = {};
    floats = {allocate_floats(count), count};
  }

  void copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
    GANYMEDE_CUDA(cudaMemcpyAsync(to, from, bytes, kind, stream_.get()));
    GANYMEDE_CUDA(cudaStreamSynchronize(stream_.get()));
  }

  /// True once all ranks have left together. Others may never come to what a rank that has failed waits for.
  bool has_finalized() noexcept {
    constexpr auto kPatience = std::chrono::seconds(5);
    if (std::uncaught_exceptions() > exceptions_ || in_progress_ || under_way_) return false;
    try {
      note(ncclCommFinalize(nccl_), "ncclCommFinalize");
      const auto begin = std::chrono::steady_clock::now();
      for (; !settled(); std::this_thread::yield())
        if (std::chrono::steady_clock::now() - begin > kPatience) return false;
      return true;
    } catch (const std::exception&) {
      return false;
    }
  }

  void note(ncclResult_t state, const char* call) {
    in_progress_ = state == ncclInProgress;
    if (!in_progress_) check(state, call, __FILE__, __LINE__);
  }

  /// True if NCCL has done what it has begun on the host.
  bool settled() {
    ncclResult_t state = ncclSuccess;
    GANYMEDE_CUDA(ncclCommGetAsyncError(nccl_, &state));
    note(state, "an operation of NCCL");
    return !in_progress_;
  }

  ncclResult_t exchange(const GpuRound& round) {
    GANYMEDE_CUDA(ncclGroupStart());
    for (const GpuTransfer& send : round.sends)
      note(ncclSend(buffer_.at(send.offset), send.floats, ncclFloat, send.peer, nccl_, stream_.get()), "ncclSend");
    std::size_t used = 0;
    for (const GpuTransfer& receive : round.receives) {
      float* into = buffer_.at(receive.offset);
      if (waits_elsewhere(round, receive)) into = arrived_.at(std::exchange(used, used + receive.floats));
      note(ncclRecv(into, receive.floats, ncclFloat, receive.peer, nccl_, stream_.get()), "ncclRecv");
    }
    return ncclGroupEnd();
  }

  void add_what_arrived(const GpuRound& round) {
    std::size_t used = 0;
    for (const GpuTransfer& receive : round.receives) {
      if (!waits_elsewhere(round, receive)) continue;
      const float* from = arrived_.at(std::exchange(used, used + receive.floats));
      float* to = buffer_.at(receive.offset);
      if (receive.reduce)
        each(receive.floats, AddFloat{to, from});
      else
        each(receive.floats, TakeFloat{to, from});
    }
  }

  template <class Body>
  void each(std::size_t count, const Body& body) {
    GANYMEDE_CUDA(launch_each(stream_.get(), multiprocessors_, count, body));
  }

  void launch() {
    GANYMEDE_CUDA(cudaGraphLaunch(graph_.get(), stream_.get()));
    round_ = rounds_.size();
    mark();
  }
  void mark() {
    GANYMEDE_CUDA(cudaEventRecord(end_.get(), stream_.get()));
    marked_ = true;
  }

  int exceptions_;  ///< that were being handled at construction
  std::string name_;
  int multiprocessors_ = 1;
  // Members are destroyed from the last to the first, so that nothing outlives what it uses.
  Stream stream_;
  Event end_;
  ncclComm_t nccl_ = nullptr;
  Floats buffer_, arrived_;
  GraphExec graph_;
  std::vector<GpuRound> rounds_;
  int calls_ = 0;
  std::size_t round_ = 0;     ///< the next one that is put on the stream
  bool in_progress_ = false;  ///< NCCL works on the host
  bool under_way_ = false, exchanged_ = false, marked_ = false, capturing_ = false;
};

}  // namespace
}  // namespace ganymede::kernel::cuda

extern "C" ganymede::kernel::GpuExchange* ganymede_make_gpu_exchange(
    const ganymede::kernel::GpuExchangeOptions& options) {
  return new ganymede::kernel::cuda::NcclExchange(options);
}

extern "C" void ganymede_make_gpu_exchange_id(ganymede::kernel::GpuExchangeId& id) {
  ncclUniqueId made;
  GANYMEDE_CUDA(ncclGetUniqueId(&made));
  std::memcpy(id.data(), &made, sizeof made);
}

extern "C" void ganymede_name_gpu(int device, std::string& bus_id) {
  char text[32] = {};
  GANYMEDE_CUDA(cudaDeviceGetPCIBusId(text, sizeof text, device));
  bus_id = text;
}
