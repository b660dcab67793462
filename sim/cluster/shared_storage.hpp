#pragma once
// How much longer steps become if jobs read their images from the same store at the same time.

#include <span>
#include <string>
#include <vector>

#include "sim/steps/step_distribution.hpp"

namespace ganymede::sim {

/// The bytes that a job's steps read, as long as its images are not in the caches of its nodes.
struct JobReading {
  const StepDistribution* steps = nullptr;  ///< its steps alone while it reads
  double step_s = 0;                        ///< mean step alone while it reads; 0: it never reads from a store
  double images = 0;  ///< that it reads after each start, before its caches have them; infinity: they never do
  /// The store that it shares with other jobs; empty: each node has a volume of its own, or an object store serves each
  /// at its own rate.
  std::string store;
  double store_s = 0;    ///< seconds for which a step's images occupy the whole store
  double latency_s = 0;  ///< from a request to its first byte
  double requests = 0;   ///< of a step to the store
};

/// A job that reads now.
struct Reader {
  double step_s = 0;  ///< its step while nobody else reads
  const JobReading* reading = nullptr;
};

/// The mean step of each job. A store gives its readers max-min fair shares of its rate: who needs less than an equal
/// part keeps its step, and the others wait for their images. Input pipelines work ahead, so that a step takes the
/// longer of its own time and of reading its images at the job's share.
std::vector<double> steps_of_readers(std::span<const Reader> readers);

}  // namespace ganymede::sim
