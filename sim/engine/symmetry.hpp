#pragma once
// Finds the symmetry of jobs on a fabric: classes of ranks, links and messages that cannot be told apart. The quotient
// has one member of each class.
//
// The classes are the coarsest equitable partition: in every stage, all ranks of a class send and receive equally many
// messages of each class, and all links of a class carry equally many. By induction all members of a class start, share
// links and end in the same way, so one member represents all: max-min fair rates are unique, and those of the quotient
// are those of the whole.
//
// Where that partition is large, a coarser one is an approximation: a link of a class then
// carries the mean number of messages, and a rank waits for the messages of every member of its class.

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "sim/engine/collective_jobs.hpp"
#include "sim/engine/fabric_graph.hpp"
#include "sim/engine/max_min_solver.hpp"

namespace ganymede::sim {

class MessageGraph;
struct EquitablePartition;

/// The part of one message that takes one path.
struct QuotientFlow {
  double bytes = 0;                 ///< on the wire
  double latency = 0;               ///< seconds
  double limit = 0;                 ///< bytes per second
  bool limit_is_protocols = false;  ///< true: the scheme's protocol sets the limit; false: the platform
  std::vector<LinkUse> uses;        ///< classes of links
};

/// A class of messages, one in each of some consecutive rounds of a call.
struct QuotientTransfer {
  int communicator = 0;
  std::size_t call = 0;
  std::int64_t first_round = 0, end_round = 0;  ///< rounds [first_round, end_round) of the call
  int source = 0, destination = 0;              ///< classes of ranks
  double adding = 0;  ///< seconds in which one destination adds all messages of the class that it gets in a round
  std::vector<QuotientFlow> flows;
};

/// A stage of a schedule. Its rounds are alike.
struct QuotientStage {
  std::int64_t first_round = 0, rounds = 0;
};

struct QuotientCall {
  double start = 0;         ///< seconds that the protocol adds to a launch
  bool eager = false;       ///< ProtocolCost::eager
  std::int64_t rounds = 0;  ///< sum over all stages
  std::vector<QuotientStage> stages;
};

/// A class of ranks, or of switches, of one communicator in one lane.
struct QuotientRank {
  int communicator = 0;          ///< index over all jobs
  double launch = 0;             ///< seconds between entering a call and the first message
  std::vector<double> issue;     ///< when each call is issued, in seconds; negative: a switch, which enters at once
  std::vector<bool> takes_part;  ///< whether each call has the lane
};

struct Quotient {
  std::vector<double> link_bandwidths;           ///< by class of links, bytes per second
  std::vector<std::size_t> link_of_class;        ///< the link that represents each class of links
  std::vector<QuotientRank> ranks;               ///< classes of ranks, in the order of their first members
  std::vector<QuotientTransfer> transfers;       ///< classes of messages
  std::vector<std::vector<QuotientCall>> calls;  ///< by communicator and call
  /// For each communicator the classes of its endpoints, lane after lane.
  std::vector<std::vector<int>> class_of;
  std::int64_t members = 0;  ///< endpoints x lanes, of all communicators
  bool is_exact = true;      ///< false: of a partition that is not equitable

  /// The transfers of a class of ranks in one call, of all rounds. A transfer is listed twice in a row if the class is
  /// both its source and its destination.
  std::span<const int> transfers_of(std::size_t rank_class, std::size_t call) const {
    const std::size_t place = first_list_of_rank[rank_class] + call;
    return {transfer_lists.data() + first_of_list[place], transfer_lists.data() + first_of_list[place + 1]};
  }
  // The lists of transfers_of(), one after the other.
  std::vector<std::size_t> first_list_of_rank, first_of_list;
  std::vector<int> transfer_lists;
};

/// Finds the classes by colour refinement. The fabric and the jobs must outlive the object.
class Symmetry {
 public:
  Symmetry(const FabricGraph& fabric, std::span<const Job> jobs);
  ~Symmetry();
  Symmetry(const Symmetry&) = delete;
  Symmetry& operator=(const Symmetry&) = delete;

  /// The quotient of the coarsest equitable partition, or of a coarser one if that has more than `most_classes` classes
  /// of ranks and links.
  Quotient quotient(std::size_t most_classes = std::numeric_limits<std::size_t>::max()) const;

 private:
  class Builder;
  const FabricGraph& fabric_;
  std::unique_ptr<const MessageGraph> graph_;
  std::unique_ptr<const EquitablePartition> alike_;  // set if the fabric alone tells ranks and links apart
};

}  // namespace ganymede::sim
