#pragma once
// A stand-in for CUDA's runtime, cuBLAS, cuDNN and NCCL, on a machine without a GPU. It defines the functions that the
// GPU backend calls, so that the backend's host code runs unchanged, and it computes on the CPU. It checks what
// NVIDIA's documentation asks of a caller; what is wrong is a violation, by which tests fail.
//
// Between begin() and end() the stand-in is one machine with some GPUs.

#include <cstddef>
#include <string>
#include <vector>

namespace ganymede::kernel::stand_in {

/// When work that was queued on streams runs. All orders are allowed by CUDA, so a program must compute the same bits
/// in each; it does not if an event is missing between two streams.
enum class Order {
  late,          ///< only when somebody waits for it
  at_once,       ///< when it is queued
  others_first,  ///< a GPU's first stream late, its other streams at once
};

struct Settings {
  Order order = Order::late;
  int devices = 1;
  int failing_device = 0;
  int failing_call = 0;  ///< this call on failing_device, counted from 1, returns an error; 0: none
  /// The heuristics of cuDNN and cublasLt list an algorithm first that they call supported and that does not run. Of
  /// cuDNN's engines for graphs one has no plan, and the plan of another does not run.
  bool broken_promises = false;
  bool runs_together = true;                        ///< the GPUs have cooperative launches
  bool no_fusion = false;                           ///< cuDNN has no engine for graphs of operations
  bool no_epilogues = false;                        ///< cublasLt has no algorithm for products with an epilogue
  bool slow_tensor_cores = false;                   ///< convolutions on tensor cores take some milliseconds more
  bool slow_algorithms = false;                     ///< so do those of cuDNN's older interface, whatever they run on
  std::size_t memory_bytes = std::size_t{8} << 30;  ///< of each GPU
};

void begin(const Settings& settings);
/// Returns the violations, and what was not given back.
std::vector<std::string> end();

/// From now on NCCL reports an error, as after a broken connection.
void break_network();

/// Calls of the libraries on a device so far.
int calls(int device);
/// The name of the call that failed by Settings::failing_call; empty: none has.
std::string failed_call();
/// Kernels, products and convolutions that streams were given, a replayed graph's too.
std::size_t launches();
/// How many of them were cooperative.
std::size_t launches_together();
/// How many of the launches were convolutions on tensor cores and have run.
std::size_t tensor_core_convolutions();
/// How many graphs of a convolution and what follows have run.
std::size_t fused_convolutions();
/// Plans for graphs that cuDNN has compiled; those it has read from texts are not among them.
std::size_t compiled_plans();
/// Nodes of the graph that was instantiated last.
std::size_t graph_nodes();

}  // namespace ganymede::kernel::stand_in
