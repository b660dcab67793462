#pragma once
// Everything that may be rented for a request. Each candidate has bounds that no simulation of it can beat.

#include <cstddef>
#include <functional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "calibration/device_memory.hpp"
#include "plan/request.hpp"

namespace ganymede::plan {

/// Lower bounds of time (seconds) and cost (dollars) for every run of a candidate, whatever its seed.
struct Bounds {
  double time_s = 0, usd = 0;
  double usd_at_worst = 0;  ///< least cost in dollars with each doubtful price at the highest value that it may have
};

/// What one image takes at least in GPU-seconds, and every run once at least in seconds (least_steps.hpp, bounds.hpp).
struct LeastWork {
  double alone_s = 0;        ///< GPU-seconds of an image if a single node trains
  double joined_s = 0;       ///< if the nodes train together and exchange their gradients in each step
  double start_s = 0;        ///< from the request to the first step, if a single node or all nodes are awaited
  double first_start_s = 0;  ///< the same if the first of several nodes trains alone
  bool start_is_paid = true;
};

struct PlanCandidate {
  std::size_t catalog = 0;  ///< index into Request::catalogs
  const platforms::Instance* instance = nullptr;
  int nodes = 1;
  int gpus_per_node = 1;    ///< if fewer than the instance has, the others are idle and paid for
  int on_demand_nodes = 0;  ///< how many of `nodes` are on demand; the others are on the spot market
  std::string region;
  platforms::Market market = platforms::Market::on_demand;
  std::size_t batch = 0;  ///< index into Request::batches
  std::string scheme;     ///< "none" for one GPU; "any" until the fastest of several is known
  const RequestPolicy* policy = nullptr;
  std::string checkpoint;  ///< interval such as "10min" or "daly"; "" if no checkpoints are written
  LeastWork work;
  Bounds bounds;
  Bounds known;  ///< the same of its median run, by an earlier search (PlanOptions::known); 0 where nothing is known

  int gpus() const { return nodes * gpus_per_node; }
  bool part_of_instance() const { return gpus_per_node < instance->gpus; }
  /// True if the provider may take nodes back.
  bool at_risk() const { return market == platforms::Market::spot || policy->policy->other_market; }
};

/// Candidates that differ only in region, market, policy and checkpoint interval, so that they share their steps.
struct CandidateGroup {
  std::vector<std::size_t> members;  ///< indices into Candidates::all
};

/// Nodes by which others of the same are left out: catalog, instance, number of nodes and GPUs of each.
using Family = std::tuple<std::size_t, std::string, int, int>;
Family family_of(const PlanCandidate& candidate);

struct Candidates {
  /// In a fixed order: catalog, instance, nodes, batch, scheme, region, market, on-demand nodes, policy, checkpoint.
  std::vector<PlanCandidate> all;
  std::vector<CandidateGroup> groups;
  std::vector<std::string> left_out;  ///< lines of left_out_line(): what was not considered, and why
};

/// The GPU memory that a pass of this batch needs on one GPU or on each of several, in the stage that needs the most.
/// Candidates hold its upper end.
calibration::DeviceMemory needed_memory(const Request& request, const Request::Batch& batch, const platforms::Gpu& gpu,
                                        bool several_gpus);

/// Lists all candidates for `request`, which must outlive them. With `each_scheme` there is one candidate for each
/// all-reduce scheme; otherwise there is one with the scheme "any", and the search replaces that by the fastest. If
/// `families` are stated, only those.
Candidates enumerate(const Request& request, bool each_scheme, const std::set<Family>& families = {});

/// One line with the reason and the first names, such as "7 instance types, retired: a, b, c, d, e, f and 1 more".
std::string left_out_line(const std::string& why, const std::set<std::string>& names);

/// Numbers of nodes to try from `least` to `most`: all of them up to 16, then four in each doubling (16, 20, 24, 28,
/// 32, 40, …), and always both ends. Empty if `least` is greater than `most`.
std::vector<int> node_counts(int least, int most);

/// Images of one step of the candidate's whole allocation.
double batch_of(const Request& request, const PlanCandidate& candidate);
/// Images that the candidate trains, or fewer: as requested, or those of a median training that gets to the FID at its
/// batch.
double images_of(const Request& request, const PlanCandidate& candidate);

/// The catalog's price of all nodes together.
MicroUsdPerHour price_of(const PlanCandidate& candidate);
/// The doubt about the candidate's prices; PriceDoubt::any() is false if there is none.
platforms::PriceDoubt doubt_of(const Request& request, const PlanCandidate& candidate);

/// The candidate in one line: "aws us-east-1 spot, 2 x p3.8xlarge, ring, spot-first, checkpoint daly".
std::string label_of(const Request& request, const PlanCandidate& candidate);
/// The same with its batch and without its scheme, which tells it from all others unless two policies have one name.
std::string key_of(const Request& request, PlanCandidate candidate);

}  // namespace ganymede::plan
