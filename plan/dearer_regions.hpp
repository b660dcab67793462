#pragma once
// Candidates that are the same as another one, in a region where everything costs as much or more, or with a batch that
// is slower.

#include <functional>
#include <vector>

#include "plan/candidates.hpp"

namespace ganymede::plan {

/// For each candidate, whether another one of its group differs only in its region, and in that region nothing is
/// dearer: neither the nodes, at stated and at doubtful prices, nor storage. With the same seed the two have the same
/// runs, because CandidateScenarios names their pools alike, so that it cannot be cheaper or faster. Of equal ones the
/// first is kept. All false where runs may differ: if the request minimizes carbon, or asks what would be if one
/// region's nodes were taken back more often, and for policies that look at prices or change regions. Only candidates
/// that are `searched` count, all if it is empty: one that is not searched cannot stand for another.
std::vector<bool> in_dearer_region(const Request& request, const Candidates& candidates,
                                   const std::function<bool(const PlanCandidate&)>& searched = {});

/// For each candidate, whether another one that is `searched` differs in its batch alone, which is larger and takes
/// less time for an image on a GPU by itself. Several GPUs exchange the same gradients after each step, which a larger
/// batch does less often and hides behind more work. So the candidate trains no faster with any number of nodes. All
/// false where a batch decides more than the speed: how many images are trained (an FID as the goal, other modes of
/// synchronization), how often the training pauses, faults, or carbon; and for policies that look at prices. Nor is a
/// candidate left out whose nodes may be taken back for nothing, unless it is so slow that it must cost more even then,
/// or by requests that ask for the mean or the worst of such runs.
std::vector<bool> with_slower_batch(const Request& request, const Candidates& candidates,
                                    const std::function<bool(const PlanCandidate&)>& searched = {});

}  // namespace ganymede::plan
