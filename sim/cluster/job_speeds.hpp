#pragma once
// How fast a job runs alone, by the shape of its place: how many GPUs on how many nodes of which pool.

#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "sim/cluster/cluster.hpp"
#include "sim/cluster/contention.hpp"
#include "sim/run/run_bill.hpp"
#include "sim/scenario/input_cache.hpp"
#include "sim/steps/step_distribution.hpp"
#include "sim/steps/step_distribution_cache.hpp"

namespace ganymede::sim {

// How much longer steps become if jobs read their images from the same store at the same time.

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

/// GPUs of each node that a job has, largest first.
using PlaceShape = std::vector<int>;

struct JobSpeed {
  const StepDistribution* steps = nullptr;  ///< alone, its images in caches
  double step_s = 0;                        ///< mean of `steps`
  double step_images = 0;                   ///< images of a step; 0: it has none
  double step_work = 0;                     ///< progress of a step, in the unit of work_of()
  double work_per_s = 0;                    ///< progress alone
  /// The load of its collectives on links; null: the job has none that cross links.
  std::shared_ptr<const CollectiveTraffic> traffic = {};
  JobReading reading = {};  ///< its images, until the caches of its nodes hold them
  std::shared_ptr<const Scenario> scenario =
      {};  ///< the workload on this shape; null: measured, or of a stated duration

  /// Above 0: its steps alone are those of another shape with as many GPUs on as many nodes, and this is the largest
  /// relative difference that was found between the mean steps of such shapes.
  double borrowed_error = 0;

  bool writes_checkpoints() const { return scenario && scenario->checkpoints.every != Checkpoints::Every::never; }
};

/// All nodes of the scenario, with a share of the bandwidth between them; of a growing model the last stage.
Configuration all_nodes(const Scenario& scenario, double network = 1);

class JobSpeeds {
 public:
  /// `cluster` must outlive this.
  explicit JobSpeeds(const Cluster& cluster) : cluster_(cluster) {}

  /// The speed on that shape; null if the job cannot run there. Simulated once for each workload, pool and shape.
  const JobSpeed* speed(const ClusterJob& job, std::size_t pool, const PlaceShape& shape);
  /// Seconds of the whole job alone on as few nodes as possible; infinity if it cannot run there.
  double alone_s(const ClusterJob& job, std::size_t pool, int gpus);
  /// The job's whole work: images, steps of all workers together for measured throughputs, seconds for stated
  /// durations.
  double work_of(const ClusterJob& job);
  /// The worth of an image on so many GPUs, relative to the GPUs that the job asks for: with a larger batch B, more
  /// images are needed for the same progress, in proportion to the noise scale + B (McCandlish et al., "An empirical
  /// model of large-batch training", 2018, which Pollux uses).
  double efficiency(const ClusterJob& job, int gpus);
  /// Seconds to write a checkpoint and to start again from it, for a job that is stopped.
  double save_s(const ClusterJob& job);
  double restore_s(const ClusterJob& job);
  /// The number of shapes of a workload on a pool that are simulated before others take the steps alone of the nearest
  /// with as many GPUs on as many nodes.
  static constexpr int kMostShapes = 64;
  std::size_t borrowed_shapes() const { return borrowed_; }
  double borrowed_error() const { return borrowed_error_; }  ///< the largest of JobSpeed::borrowed_error
  const std::vector<std::string>& warnings() const { return warnings_; }
  /// Adds a warning, once.
  void warn(const std::string& text);

  /// The workload's scenario on nodes of that shape. Throws Infeasible if it cannot run there.
  Scenario scenario(const ClusterWorkload& workload, std::size_t pool, const PlaceShape& shape);

 private:
  struct Entry {
    bool possible = false;
    JobSpeed speed;
  };
  /// The shapes of a workload on a pool that were simulated.
  struct Shapes {
    int count = 0, compared = 0;  // compared: with the nearest that was known, before it was simulated
    double error = 0;             // the largest relative difference of the two mean steps
    std::map<std::pair<int, std::size_t>, std::vector<std::pair<PlaceShape, JobSpeed>>> by_size;  // GPUs and nodes
  };
  Entry borrowed(const JobSpeed& from, std::shared_ptr<const Scenario> here, double error);
  Entry simulated(const ClusterWorkload& workload, std::size_t pool, const PlaceShape& shape);
  Entry measured(const ClusterWorkload& workload, std::size_t pool, const PlaceShape& shape);
  /// A job whose GPUs compute all the time.
  Entry stated(int gpus, double step_s, double step_work);
  const Scenario& asked(const ClusterJob& job);

  const Cluster& cluster_;
  ScenarioInputCache inputs_;
  StepDistributionCache steps_;
  std::deque<StepDistribution> stated_;
  std::map<std::tuple<std::size_t, std::size_t, PlaceShape>, Entry> entries_;   // by workload, pool and shape
  std::map<std::tuple<std::size_t, std::size_t, int>, const JobSpeed*> tight_;  // by workload, pool and GPUs, packed
  std::map<std::pair<std::size_t, int>, Scenario> asked_;                       // by workload and GPUs
  std::map<std::pair<const ClusterWorkload*, std::size_t>, Shapes> shapes_;     // by workload and pool
  std::size_t borrowed_ = 0;                                                    // shapes
  double borrowed_error_ = 0;
  std::vector<std::string> warnings_;
};

}  // namespace ganymede::sim
