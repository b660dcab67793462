#include "sim/engine/folded_engine.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/units.hpp"
#include "sim/engine/folded_simulation.hpp"
#include "sim/engine/message_graph.hpp"

namespace ganymede::sim {

namespace {

/// The time from the first arrival to the last end, in seconds.
double span_of(const Quotient& quotient, const FoldedSimulation& simulation) {
  double first = std::numeric_limits<double>::infinity(), last = 0;
  for (std::size_t rank = 0; rank < quotient.ranks.size(); ++rank) {
    if (!simulation.done(rank).empty()) last = std::max(last, simulation.done(rank).back());
    for (const double issue : quotient.ranks[rank].issue)
      if (issue >= 0) first = std::min(first, issue);
  }
  return last - first;
}

/// Simulates a quotient and returns the time from the first arrival to the last end, in seconds.
double span_of(const Quotient& quotient) {
  const FoldedSimulation simulation(quotient);
  return span_of(quotient, simulation);
}

Quotient without_latency(Quotient quotient) {
  for (QuotientRank& rank : quotient.ranks) rank.launch = 0;
  for (auto& calls : quotient.calls)
    for (QuotientCall& call : calls) call.start = 0;
  for (QuotientTransfer& transfer : quotient.transfers)
    for (QuotientFlow& flow : transfer.flows) flow.latency = 0;
  return quotient;
}

Quotient without_reduction(Quotient quotient) {
  for (QuotientTransfer& transfer : quotient.transfers) transfer.adding = 0;
  return quotient;
}

/// Each class of messages comes later by another part of a picosecond, which is SimGrid's precision, so that where two
/// come together another is first.
Quotient nudged(Quotient quotient) {
  constexpr double kNudge = 1e-12;
  Color number = 0;
  for (QuotientTransfer& transfer : quotient.transfers)
    for (QuotientFlow& flow : transfer.flows)
      flow.latency += kNudge * static_cast<double>(mixed(++number) >> 32U) / static_cast<double>(Color{1} << 32U);
  return quotient;
}

/// Which limits are lifted: those of links, those of single flows, or both.
enum class Widened { links, flows, both };

Quotient with_wide(Quotient quotient, Widened what) {
  constexpr double kFactor = 1e9;  // in effect no limit
  if (what != Widened::flows)
    for (double& bandwidth : quotient.link_bandwidths) bandwidth *= kFactor;
  if (what == Widened::links) return quotient;
  for (QuotientTransfer& transfer : quotient.transfers)
    for (QuotientFlow& flow : transfer.flows) flow.limit *= kFactor;
  return quotient;
}

/// Says who limits the rate of single flows: "per_flow" for the platform, else "protocol" for the scheme; "": nobody.
std::string flow_limit(const Quotient& quotient) {
  bool by_protocol = false;
  for (const QuotientTransfer& transfer : quotient.transfers)
    for (const QuotientFlow& flow : transfer.flows) {
      if (!std::isfinite(flow.limit)) continue;
      if (!flow.limit_is_protocols) return "per_flow";
      by_protocol = true;
    }
  return by_protocol ? "protocol" : "";
}

/// The name of a link without numbers: "nic.up" for "nic.3.0.up@2".
std::string link_kind(const std::string& name) {
  std::string out;
  for (std::size_t i = 0; i < name.size() && name[i] != '@'; ++i) {
    const bool number = name[i] == '.' && i + 1 < name.size() && name[i + 1] >= '0' && name[i + 1] <= '9';
    if (!number) {
      out += name[i];
      continue;
    }
    while (i + 1 < name.size() && name[i + 1] != '.' && name[i + 1] != '@') ++i;
  }
  return out;
}

/// Returns the class of links that needs the most time for the bytes that cross it, and that time in seconds.
std::pair<std::size_t, double> busiest_link(const Quotient& quotient) {
  std::vector<double> seconds(quotient.link_bandwidths.size());
  for (const QuotientTransfer& transfer : quotient.transfers)
    for (const QuotientFlow& flow : transfer.flows)
      for (const LinkUse& use : flow.uses)
        seconds[static_cast<std::size_t>(use.link)] += static_cast<double>(transfer.end_round - transfer.first_round) *
                                                       flow.bytes * use.weight /
                                                       quotient.link_bandwidths[static_cast<std::size_t>(use.link)];
  const auto most = std::max_element(seconds.begin(), seconds.end());
  return {static_cast<std::size_t>(most - seconds.begin()), *most};
}

/// The seconds that the class of ranks with most to add adds in a round of a stage.
double longest_adding(const Quotient& quotient, int communicator, std::size_t call, const QuotientStage& stage) {
  std::vector<double> of_rank(quotient.ranks.size());
  for (const QuotientTransfer& transfer : quotient.transfers)
    if (transfer.adding > 0 && transfer.communicator == communicator && transfer.call == call &&
        transfer.first_round <= stage.first_round && stage.first_round < transfer.end_round)
      of_rank[static_cast<std::size_t>(transfer.destination)] += transfer.adding;
  return *std::max_element(of_rank.begin(), of_rank.end());
}

/// An upper bound on the time of adding, in seconds: the longest additions of every round, one after the other.
double adding_bound(const Quotient& quotient) {
  // Adding begins or ends to be needed only where a stage does, so the sum goes over stages.
  double sum = 0;
  for (std::size_t number = 0; number < quotient.calls.size(); ++number)
    for (std::size_t call = 0; call < quotient.calls[number].size(); ++call)
      for (const QuotientStage& stage : quotient.calls[number][call].stages)
        sum += static_cast<double>(stage.rounds) * longest_adding(quotient, static_cast<int>(number), call, stage);
  return sum;
}

/// Finds the cost whose removal saves the most. The parts of the longest chain of events add up to its time, so a cost
/// whose removal saves half of the time is the bottleneck, and the others need not be tried.
Bottleneck find_bottleneck(const FabricGraph& fabric, const Quotient& quotient) {
  const double all = span_of(quotient);
  if (all <= 0) return {};
  const auto saved = [&](const Quotient& cheaper) { return 1 - span_of(cheaper) / all; };
  if (quotient.link_bandwidths.empty()) return {"latency", saved(without_latency(quotient))};
  const auto [link, busy] = busiest_link(quotient);
  // A link may have bandwidth to spare while each flow on it has reached the limit of one connection.
  const auto bandwidth_bottleneck = [&, link = link](double share) -> Bottleneck {
    const std::string flows = flow_limit(quotient);
    const bool flows_bind =
        !flows.empty() && saved(with_wide(quotient, Widened::flows)) > saved(with_wide(quotient, Widened::links));
    return {flows_bind ? flows : link_kind(fabric.links()[quotient.link_of_class[link]].name), share};
  };
  constexpr double kHalf = 0.5;
  double bandwidth = -1, latency = -1;
  if (busy >= kHalf * all && (bandwidth = saved(with_wide(quotient, Widened::both))) >= kHalf)
    return bandwidth_bottleneck(bandwidth);
  if ((latency = saved(without_latency(quotient))) >= kHalf) return {"latency", latency};
  if (bandwidth < 0) bandwidth = saved(with_wide(quotient, Widened::both));
  const bool may_matter = adding_bound(quotient) > std::max(latency, bandwidth) * all;
  const double reduction = may_matter ? saved(without_reduction(quotient)) : 0;
  if (latency >= std::max(reduction, bandwidth)) return {"latency", latency};
  if (reduction >= bandwidth) return {"reduction", reduction};
  return bandwidth_bottleneck(bandwidth);
}

/// When every rank is done, by job, communicator and call.
JobTimes times_of(std::span<const Job> jobs, const Quotient& quotient, const FoldedSimulation& simulation) {
  JobTimes times;
  std::size_t number = 0;
  for (const Job& job : jobs) {
    auto& communicators = times.emplace_back();
    for (const Communicator& communicator : job.communicators) {
      auto& calls = communicators.emplace_back();
      for (std::size_t call = 0; call < communicator.calls.size(); ++call) {
        const Schedule& schedule = *communicator.calls[call].schedule;
        CollectiveTimes all{{}, schedule.messages()};
        for (int rank = 0; rank < schedule.ranks(); ++rank) {
          Seconds done;
          for (int lane = 0; lane < schedule.lanes(); ++lane) {
            const int member = lane * schedule.endpoints() + rank;
            const int same = quotient.class_of[number][static_cast<std::size_t>(member)];
            done = std::max(done, Seconds{simulation.done(static_cast<std::size_t>(same))[call]});
          }
          all.done.push_back(done);
        }
        calls.push_back(std::move(all));
      }
      ++number;
    }
  }
  return times;
}

/// The largest difference of the ends of the same call, in seconds. A call ends when its last rank is done.
double largest_difference(const JobTimes& one, const JobTimes& other) {
  const auto end = [](const CollectiveTimes& call) { return *std::max_element(call.done.begin(), call.done.end()); };
  double largest = 0;
  for (std::size_t job = 0; job < one.size(); ++job)
    for (std::size_t communicator = 0; communicator < one[job].size(); ++communicator)
      for (std::size_t call = 0; call < one[job][communicator].size(); ++call)
        largest =
            std::max(largest, std::abs((end(one[job][communicator][call]) - end(other[job][communicator][call])).si));
  return largest;
}

/// With at most so many classes of ranks and links, times are exact.
constexpr std::size_t kExactClasses = 2048;
/// The classes of the first approximation, and how many times as many the next one has.
constexpr std::size_t kFirstClasses = 256, kMoreClasses = 4;
/// Where nudges change the time by more, picoseconds decide it. It is what both simulations agree within.
constexpr double kSteady = 1e-6;
/// The largest simulation that is nudged: where thousands of messages no longer come together, it takes ten times as
/// long.
constexpr std::int64_t kMaxFlowsToNudge = 20'000;
/// The classes of the last approximation, which takes some seconds; where the tolerance is then missed, the difference
/// says so, unless few more classes make the times exact.
constexpr std::size_t kMostClasses = 4096;

}  // namespace

FoldedTimes run_folded(const FabricGraph& fabric, std::span<const Job> jobs, bool explain, double tolerance) {
  const Symmetry symmetry(fabric, jobs);
  FoldedTimes result;
  Quotient quotient = tolerance > 0 ? symmetry.quotient(kExactClasses) : symmetry.quotient();
  for (std::size_t classes = kFirstClasses;; classes *= kMoreClasses) {
    const bool first = classes == kFirstClasses, last = classes == kMostClasses;
    if (!quotient.is_exact) quotient = symmetry.quotient(classes);
    if (last && !quotient.is_exact)
      if (Quotient exact = symmetry.quotient(2 * classes); exact.is_exact) quotient = std::move(exact);
    const FoldedSimulation simulation(quotient);
    JobTimes times = times_of(jobs, quotient, simulation);
    const double all = span_of(quotient, simulation);
    // Two approximations may have the same times, and still be none that are exact.
    result.difference =
        quotient.is_exact ? 0
        : first           ? 1
                : std::max(largest_difference(times, result.times) / all, std::numeric_limits<double>::epsilon());
    result.times = std::move(times);
    if (result.difference > tolerance && !last) continue;
    result.classes = static_cast<int>(quotient.ranks.size());
    result.members = quotient.members;
    result.flows = simulation.flows();
    result.rounds_skipped = simulation.rounds_skipped();
    if (!explain) return result;
    if (quotient.is_exact && quotient.ranks.size() > 1 && simulation.flows() <= kMaxFlowsToNudge) {
      const Quotient other = nudged(quotient);
      const double moved = largest_difference(times_of(jobs, other, FoldedSimulation(other)), result.times) / all;
      if (moved > kSteady) result.difference = moved;
    }
    // The limit of the time is seen on a coarser partition too.
    if (quotient.ranks.size() > kFirstClasses) quotient = symmetry.quotient(kFirstClasses);
    result.bottleneck = find_bottleneck(fabric, quotient);
    return result;
  }
}

std::optional<Seconds> time_after_last_arrival(const FabricGraph& fabric, const Schedule& all_reduce) {
  const Topology& topology = fabric.topology();
  const bool own_links = topology.gpus_per_node == 1 || topology.nodes() == 1;  // then no two ranks share a NIC
  if (!own_links || all_reduce.endpoints() * all_reduce.lanes() != all_reduce.ranks()) return std::nullopt;
  const Job job{
      {Communicator{{}, {{&all_reduce, std::vector<Seconds>(static_cast<std::size_t>(all_reduce.ranks()))}}}}};
  const Quotient quotient = Symmetry(fabric, {&job, 1}).quotient(kExactClasses);
  if (!quotient.is_exact || quotient.ranks.size() != 1) return std::nullopt;
  for (const QuotientStage& stage : quotient.calls[0][0].stages) {
    std::vector<double> load(quotient.link_bandwidths.size());
    bool sends = false;
    for (const QuotientTransfer& transfer : quotient.transfers) {
      if (stage.first_round < transfer.first_round || stage.first_round >= transfer.end_round) continue;
      sends = true;
      for (const QuotientFlow& flow : transfer.flows)
        for (const LinkUse& use : flow.uses) load[static_cast<std::size_t>(use.link)] += use.weight;
    }
    if (!sends || *std::max_element(load.begin(), load.end()) > 1) return std::nullopt;
  }
  const FoldedSimulation simulation(quotient);
  return Seconds{simulation.done(0)[0]};
}

}  // namespace ganymede::sim
