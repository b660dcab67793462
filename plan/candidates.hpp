#pragma once
// Everything that a request could rent, each with bounds that no simulation of it can beat.

#include <cstddef>
#include <string>
#include <vector>

#include "plan/request.hpp"

namespace ganymede {

/// What a run of a candidate takes at least, whatever its seed.
struct Bounds {
  double time_s = 0, usd = 0;
};

struct Candidate {
  std::size_t catalog = 0;  ///< of the request's
  const Instance* instance = nullptr;
  int nodes = 1;
  std::string region;
  Market market = Market::on_demand;
  std::string scheme;  ///< "none" for one GPU
  const RequestPolicy* policy = nullptr;
  std::string checkpoint;  ///< "" where none are written
  Bounds bounds;

  int gpus() const { return nodes * instance->gpus; }
};

struct CandidateGroup {
  std::vector<std::size_t> members;  ///< alike but for region, market, policy and checkpoints: their steps are the same
};

struct Candidates {
  std::vector<Candidate>
      all;  ///< in a fixed order: catalog, instance, nodes, scheme, region, market, policy, checkpoint
  std::vector<CandidateGroup> groups;
  std::vector<std::string> left_out;  ///< what was not considered, and why
};

/// The request must outlive them.
Candidates enumerate(const Request& request);

/// A scenario of the candidate.
nlohmann::json scenario_of(const Request& request, const Candidate& candidate);

/// "aws us-east-1 spot, 2 x p3.8xlarge, ring, spot-first, checkpoint daly"
std::string label_of(const Request& request, const Candidate& candidate);

}  // namespace ganymede
