#pragma once
// The chunks in which NCCL sends bytes through trees and switches, and what they cost. Chunks are in flight together: a
// latency is paid once for each hop of the longest way, not for each chunk, and the bytes once for each chunk that
// passes the busiest link, plus those of the chunks that fill the pipeline.
//
// A schedule plans a limited number of chunks. An endpoint meets its neighbours in every round, so the rounds of a
// schedule would pay a latency for each chunk; latencies are therefore scaled so that their sum is that of the way. The
// bytes are scaled so that a limited number of chunks takes as long as the real number.

#include <cstdint>
#include <limits>

#include "sim/collectives/allreduce.hpp"
#include "sim/collectives/nccl_tuner.hpp"

namespace ganymede::sim {

struct NcclPipeline {
  std::int64_t chunks = 1;     ///< planned by the schedule
  double real_chunks = 1;      ///< sent by NCCL; infinite for protocols that forward each line as it comes
  double chunks_between = 1;   ///< messages of a channel between nodes
  double filling = 0;          ///< chunks that fill the pipeline: the hops of the longest way, up and down, less one
  double latency_share = 1;    ///< the share of a hop's latency that a round of the schedule pays
  Seconds way{0};              ///< latency of a chunk's way from a leaf to the root and back
  Seconds inside{0};           ///< whole latency of a hop inside a node
  Seconds between{0};          ///< whole latency of a hop between nodes
  double filling_between = 0;  ///< of them those between nodes: those hops, up and down, less one
  double byte_factor() const;  ///< time of the real chunks over that of the planned ones, if all hops are alike
  /// How many times the bytes pass the NICs of the busiest node in each direction. An inner node of one of two trees
  /// sends half of the bytes to its parent and to each of two children, and is a leaf of the other tree; between three
  /// nodes it has one child, and between two nodes each is the root of one tree. Switches that reduce carry them once.
  double crossings = 1;
  /// What passes the NICs on the way of the first chunk up and down, one hop after another, in units of a chunk of all
  /// channels. A hop between two nodes carries half of it, for each of two trees fills one direction, and a hop to a
  /// node with two children carries it twice: 1 between two nodes, 2 between three, 3 between four, 5 between five to
  /// eight. A switch between the nodes takes all of it and sends all of it.
  double first_crossing = 1;
  /// The rate of a planned message between nodes over that of NCCL's: messages that pass a NIC at once in NCCL pass it
  /// one after another in the schedule, whose pipeline is shorter and takes longer to fill inside nodes, where all
  /// bytes take as long as between nodes divided by `inside_over_between` (infinite: no time).
  double rate_between(double inside_over_between = std::numeric_limits<double>::infinity()) const;
};

/// The rate at which lines of LL, with their flags, pass the hosts of a hop between nodes for each NIC; infinite for
/// other protocols, over sockets and for nodes of one GPU. LL's buffers lie in the hosts' memory even with GPUDirect
/// (NVIDIA/nccl src/transport/net.cc): a GPU writes lines there, a proxy checks the flags of all lines of a step before
/// it sends the step, and the other GPU reads them over its bus.
BytesPerSecond nccl_line_rate(const Topology& topology, NcclProtocol protocol);

/// What LL's lines add to a hop between nodes: a step of each channel of a NIC, or what there is of it, passes the
/// hosts before it counts. Small sizes take fewer channels, each of which has at least 512 threads with 8 bytes each,
/// of each rank in a ring (NVIDIA/nccl src/enqueue.cc, NCCL_LL_THREAD_THRESHOLD); a step has 32 KiB of payload.
Seconds nccl_step_of_lines(const PlanRequest& request, const NcclChoice& choice);

/// The pipeline of a tree, NVLS or NVLSTree. Precondition: the algorithm is no ring.
NcclPipeline nccl_pipeline(const PlanRequest& request, const NcclChoice& choice);

}  // namespace ganymede::sim
