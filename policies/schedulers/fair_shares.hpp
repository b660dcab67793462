#pragma once
// Shares of time that are max-min fair over jobs on unlike GPUs.

#include <vector>

namespace ganymede::policies {

/// fair_shares() divides `gpus[j]` GPUs of one pool at a time for job j, whose GPUs are worth `worth[j][p]` in
/// pool p (0: it cannot run there), and `pools[p]` GPUs of each pool.
struct SharedPools {
  std::vector<double> gpus;
  std::vector<std::vector<double>> worth;
  std::vector<double> pools;
};

/// For each job the shares of its time in each pool, which sum to at most 1, such that no pool is used by more GPUs
/// than it has and the least worth that a job gets, the sum of share times worth, is as large as possible. Among all
/// such shares it returns the analytic centre, which interior-point solvers converge to: what the least fortunate jobs
/// leave is spread evenly over the others. Found within 1e-6 by Newton's method along the central path (Boyd and
/// Vandenberghe, "Convex Optimization", 2004, section 11.3). A job that is worth nothing anywhere gets no share.
std::vector<std::vector<double>> fair_shares(const SharedPools& shared);

}  // namespace ganymede::policies
