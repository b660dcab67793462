#pragma once
// What is left of jobs on a fabric when ranks, links and messages that cannot be told apart are taken as one: the
// quotient by the coarsest equitable partition.
//
// Members of a class of ranks send and receive, in every stage, alike many messages of each class; members of a class
// of links carry alike many. So they start, share and end alike, and one of each class tells of all: the max-min shares
// of the quotient are those of the whole, as these are unique.

#include <cstdint>
#include <span>
#include <vector>

#include "sim/engine/collective_jobs.hpp"
#include "sim/engine/fabric_graph.hpp"
#include "sim/engine/fluid.hpp"

namespace ganymede {

/// Of one message over one of its ways.
struct QuotientFlow {
  double bytes = 0;  ///< on the wire
  double latency = 0;
  double limit = 0;                 ///< bytes a second
  bool limit_is_protocols = false;  ///< set by the scheme's protocol, not by the platform
  std::vector<LinkUse> uses;
};

/// A class of messages.
struct QuotientTransfer {
  int source = 0, destination = 0;  ///< classes
  double adding = 0;                ///< seconds that a destination needs to add all of these that it receives
  std::vector<QuotientFlow> flows;
};

struct QuotientStage {
  std::int64_t first_round = 0, rounds = 0;
  std::vector<QuotientTransfer> transfers;
  std::vector<std::vector<int>> of_class;  ///< transfers in which a class takes part, twice if at both ends
};

struct QuotientCall {
  double start = 0;    ///< what the protocol adds to a launch
  bool eager = false;  ///< of the protocol
  std::int64_t rounds = 0;
  std::vector<QuotientStage> stages;
};

/// A class of ranks (or switches) of one communicator, in a lane.
struct QuotientRank {
  int communicator = 0;          ///< counted over all jobs
  double launch = 0;             ///< seconds between the entry and the first message
  std::vector<double> issue;     ///< by call: when it is issued; below zero: a switch, which enters at once
  std::vector<bool> takes_part;  ///< by call: whether that has such a lane
};

struct Quotient {
  std::vector<double> link_bandwidths;     ///< by class of links
  std::vector<std::size_t> link_of_class;  ///< a link that stands for each
  std::vector<QuotientRank> ranks;
  std::vector<std::vector<QuotientCall>> calls;  ///< by communicator
  std::vector<std::vector<int>> class_of;        ///< by communicator; lane by lane, the endpoints of its schedules
  std::int64_t members = 0;                      ///< endpoints of all communicators
};

Quotient quotient_of(const FabricGraph& fabric, std::span<const Job> jobs);

}  // namespace ganymede
