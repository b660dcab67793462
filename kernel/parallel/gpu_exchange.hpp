#pragma once
// Messages between GPUs, for programs that execute a schedule of their own in place of a library's collective.

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace ganymede::kernel {

/// One message, in floats of the sender's or the receiver's buffer.
struct GpuTransfer {
  std::size_t offset, floats;
  int peer;
  bool reduce = false;  ///< of one that is received: its floats are added on to the buffer's
};

/// Messages that are under way at the same time. What is sent is the buffer as the rounds before have left it.
struct GpuRound {
  std::vector<GpuTransfer> sends, receives;
};

/// One rank of the processes of a program, with a GPU of its own. The messages between two ranks in one round are
/// matched in their order. Used by one thread. All functions throw Failure if CUDA or NCCL fails; the destructor then
/// leaves the other ranks without waiting for them.
class GpuExchange {
 public:
  GpuExchange() = default;
  GpuExchange(const GpuExchange&) = delete;
  GpuExchange& operator=(const GpuExchange&) = delete;
  virtual ~GpuExchange() = default;

  virtual std::string name() const = 0;  ///< for example "NCCL 2.26.2, NVIDIA H200"
  /// Begins what all ranks must begin alike: `rounds` on a buffer of so many floats. No rank waits for another here.
  /// Precondition of this and of the next four: done().
  virtual void plan(std::size_t floats, std::vector<GpuRound> rounds) = 0;
  virtual void write(std::span<const float> values) = 0;  ///< sets the buffer
  virtual void read(std::span<float> values) = 0;
  /// Executes the plan: the first time round by round, while connections are opened; then as one CUDA graph.
  virtual void start() = 0;
  /// Seconds that adding so many floats on to others takes on the GPU.
  virtual double seconds_of_adding(std::size_t floats) = 0;
  /// Drives what has been begun, the joining of the ranks by the constructor too, and says whether it has ended.
  virtual bool done() = 0;
};

/// Names a group of ranks: rank 0 makes one, and all ranks must have the same.
using GpuExchangeId = std::array<std::byte, 128>;

struct GpuExchangeOptions {
  int device = 0;  ///< index among the GPUs that the process sees
  int rank = 0, ranks = 1;
  GpuExchangeId id = {};
};

/// The functions that the CUDA module exports.
using MakeGpuExchange = GpuExchange* (*)(const GpuExchangeOptions& options);
using MakeGpuExchangeId = void (*)(GpuExchangeId& id);
using NameGpu = void (*)(int device, std::string& bus_id);
inline constexpr const char* kMakeGpuExchange = "ganymede_make_gpu_exchange";
inline constexpr const char* kMakeGpuExchangeId = "ganymede_make_gpu_exchange_id";
inline constexpr const char* kNameGpu = "ganymede_name_gpu";

/// Precondition of all three: count_gpus().count > 0 (kernel/ops/cuda/cuda_backend.hpp).
std::unique_ptr<GpuExchange> open_gpu_exchange(const GpuExchangeOptions& options);
GpuExchangeId make_gpu_exchange_id();
/// The PCI address of a GPU, which is its own among those of the machine.
std::string bus_id_of_gpu(int device);

}  // namespace ganymede::kernel
