#pragma once
// The scenarios of a request's candidates, made from what the request has parsed and what each candidate rents.

#include <functional>
#include <map>
#include <string>

#include "common/json.hpp"
#include "plan/candidates.hpp"
#include "sim/scenario/parts.hpp"

namespace ganymede::plan {

/// Makes scenarios one after the other. Candidates share the sections in which they are equal, which are kept here.
class CandidateScenarios {
 public:
  /// `request` must outlive this.
  explicit CandidateScenarios(const Request& request) : request_(request) {}

  /// The parts of the candidate's scenario; if its scheme is "any", "synchronization" must not be read.
  sim::ScenarioParts parts(const PlanCandidate& candidate);
  /// The candidate's scenario, with what the request changes for questions of the kind "what if". Throws ConfigError if
  /// the request states something that this candidate cannot have, for example a storage class, and Infeasible if the
  /// model does not fit the GPU's memory.
  sim::Scenario scenario(const PlanCandidate& candidate);

 private:
  /// Adds a section, which `content` makes if no candidate has had this variant of it yet.
  void add(sim::ScenarioParts& parts, const std::string& key, const std::string& variant,
           const std::function<Json()>& content);

  const Request& request_;
  std::map<std::string, JsonNode> known_;  // by key and variant
};

}  // namespace ganymede::plan
