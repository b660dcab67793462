#pragma once
// How workers synchronize: the mode, the all-reduce scheme and who holds the weights.

#include <optional>
#include <string>
#include <vector>

#include "platforms/platform.hpp"
#include "sim/collectives/allreduce.hpp"

namespace ganymede::sim {

enum class Mode { all_reduce, async_parameter_server, local_sgd, gossip };
enum class Placement {
  data_parallel,    ///< Each worker holds both networks.
  component_split,  ///< Workers 2p and 2p + 1 hold the discriminator and the generator of pair p.
};

struct Synchronization {
  Mode mode = Mode::all_reduce;
  Placement placement = Placement::data_parallel;
  Scheme scheme;
  bool overlap = true;  ///< Gradients are reduced while the backward pass goes on.
  /// True: all gradients of a network go into one all-reduce after the backward pass has ended; `overlap` is ignored.
  bool flat_reduction = false;
  bool reduction_stated = false;  ///< false: a recipe's own counts, if it has one
  /// Share of compute speed that kernels lose while an all-reduce is under way; unset: as evidence states it for the
  /// transport; 0: kernels lose nothing, and buckets cost nothing but their reduction.
  std::optional<double> interference;
  /// Sizes of the largest variables. A parameter server holds each of them whole; empty: all are small.
  std::vector<Bytes> variables;
  std::optional<double> jitter;  ///< Relative standard deviation of workers' steps; unset: that of the workload.
  int backup_workers = 0;        ///< All-reduce: number of slowest workers that a step does not wait for.
  int local_steps = 1;           ///< Local SGD: steps between two averagings.
  bool by_speed = false;         ///< Batch sizes are proportional to the workers' speeds; their sum stays the same.
  double secure_bytes = 1;       ///< Local SGD: bytes of an update with secure aggregation divided by those without.
  Seconds secure_cpu_per_gb{0};  ///< CPU time to mask or encrypt 1e9 bytes of an update.
};

/// Number of batches that `workers` workers load and train on in a step: one for each worker, or one for each pair
/// under component_split.
int batches_loaded(const Synchronization& synchronization, int workers);
/// Number of batches of a step that count, without those that are dropped because of backup workers. Images per step,
/// epochs and targets follow from this number. For example, 8 workers including 1 backup worker train 7 batches per
/// step.
int batches_a_step(const Synchronization& synchronization, int workers);

/// Dedicated machines that hold the weights of asynchronous training, rented on demand from the request to the end.
struct ServerNodes {
  int nodes = 0;           ///< 0: the workers' nodes hold the weights.
  std::string instance;    ///< An instance type of the first pool's platform.
  platforms::Price price;  ///< Price of one node.
};

}  // namespace ganymede::sim
