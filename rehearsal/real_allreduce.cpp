#include "rehearsal/real_allreduce.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "common/errors.hpp"
#include "common/json_value.hpp"
#include "common/random.hpp"
#include "common/statistics.hpp"
#include "common/units.hpp"
#include "kernel/ops/cuda/cuda_backend.hpp"
#include "kernel/parallel/communicator.hpp"
#include "rehearsal/clock.hpp"
#include "sim/engine/folded_engine.hpp"

namespace ganymede::rehearsal {
namespace {

kernel::GpuTransfer gpu_transfer(const sim::Transfer& transfer, int peer) {
  return {static_cast<std::size_t>(transfer.offset) / sizeof(float),
          static_cast<std::size_t>(transfer.length) / sizeof(float), peer, transfer.reduce};
}

/// The fault of the GPUs of the ranks, which are named by machine and address; "": each rank has one of its own.
std::string lack_of_gpus(Group& group, const kernel::Gpus& gpus, int device) {
  // 53 bits of a hash are a number that a double holds.
  const auto name_of_gpu = [&] { return fnv1a(group.host_of(group.rank()) + kernel::bus_id_of_gpu(device)) >> 11U; };
  const double mine = gpus.count == 0 ? -1 : static_cast<double>(name_of_gpu());
  std::vector<double> all(static_cast<std::size_t>(group.ranks()));
  const auto gathered = group.gather({&mine, 1});
  for (std::size_t rank = 0; rank < gathered.size(); ++rank) all[rank] = gathered[rank][0];
  group.broadcast(all);
  const auto with = std::count_if(all.begin(), all.end(), [](double name) { return name >= 0; });
  if (with == 0) return gpus.why_none;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const auto name_of = [&](std::size_t number) { return group.name_of(static_cast<int>(number)); };
    const auto first = static_cast<std::size_t>(std::find(all.begin(), all.end(), all[rank]) - all.begin());
    if (all[rank] < 0) return fmt::format("{} of {} ranks have a GPU, {} has none", with, all.size(), name_of(rank));
    if (first < rank)
      return fmt::format("{} and {} would share a GPU, and NCCL has one rank on each", name_of(first), name_of(rank));
  }
  return "";
}

}  // namespace

std::vector<kernel::GpuRound> gpu_rounds(const RankPlan& plan) {
  std::map<std::int64_t, kernel::GpuRound> rounds;
  for (const auto& lane : plan.lanes())
    for (const RankPlan::Round& round : lane) {
      kernel::GpuRound& out = rounds[round.number];
      for (const sim::Transfer& send : round.sends) out.sends.push_back(gpu_transfer(send, send.destination));
      for (const sim::Transfer& receive : round.receives) out.receives.push_back(gpu_transfer(receive, receive.source));
    }
  std::vector<kernel::GpuRound> out;
  for (auto& [number, round] : rounds) out.push_back(std::move(round));
  return out;
}

namespace {

/// Joins the GPUs of all ranks, each its own; null if `backend` is "cpu", or "auto" and there are not enough. `why_not`
/// says then why. Throws ConfigError on all ranks if `backend` is "cuda" and there are not enough.
std::unique_ptr<kernel::GpuExchange> join_gpus(Group& group, const std::string& backend, std::string& why_not) {
  if (backend == "cpu") return nullptr;
  group.enter("the joining of the GPUs");
  const kernel::Gpus gpus = kernel::count_gpus();
  kernel::GpuExchangeOptions options{
      .device = kernel::gpu_of_process(gpus.count), .rank = group.rank(), .ranks = group.ranks()};
  why_not = lack_of_gpus(group, gpus, options.device);
  if (!why_not.empty()) {
    if (backend == "cuda") throw ConfigError("--backend: found cuda, expected a GPU for each rank: " + why_not);
    return nullptr;
  }
  std::array<double, sizeof(kernel::GpuExchangeId) / sizeof(double)> packed{};
  if (group.is_first()) {
    const kernel::GpuExchangeId id = kernel::make_gpu_exchange_id();
    std::memcpy(packed.data(), id.data(), sizeof id);
  }
  group.broadcast(packed);
  std::memcpy(options.id.data(), packed.data(), sizeof options.id);
  std::unique_ptr<kernel::GpuExchange> exchange = kernel::open_gpu_exchange(options);
  group.finish(*exchange, 0);
  return exchange;
}

constexpr int kWarmups = 3, kMinRepeats = 7, kMaxRepeats = 101;
constexpr double kBudget = 1;  // seconds of measuring for each call, about

/// One rank's side of the calls.
class Caller {
 public:
  Caller(Group& group, kernel::GpuExchange* gpu, const sim::Schedule& schedule)
      : group_(group), gpu_(gpu), plan_(schedule, group.rank()), buffer_(plan_.floats()) {
    if (gpu_ != nullptr) gpu_->plan(buffer_.size(), gpu_rounds(plan_));
  }

  struct Times {
    double start, end, processor;
  };
  Times call(double start) {
    fill(buffer_, group_.rank());
    if (gpu_ != nullptr) gpu_->write(buffer_);
    group_.sleep_until(start, true);
    Times times{group_.now(), 0, processor_time()};
    if (gpu_ != nullptr) {
      gpu_->start();
      group_.finish(*gpu_, static_cast<std::int64_t>(buffer_.size() * sizeof(float)));
    } else {
      Execution execution(plan_, group_.messenger(), buffer_, Group::kFirstFreeTag);
      group_.finish(execution);
    }
    times.end = group_.now();
    times.processor = processor_time() - times.processor;
    if (gpu_ != nullptr) gpu_->read(buffer_);
    if (fault_.empty()) fault_ = fault_in_sum(buffer_, group_.ranks());
    return times;
  }
  /// The fault of a sum on any rank; "": none.
  std::string fault() { return group_.first_of(fault_); }

 private:
  Group& group_;
  kernel::GpuExchange* gpu_;
  RankPlan plan_;
  std::string fault_;
  std::vector<float> buffer_;
};

/// The 95 % interval of the median of sorted values: ranks (n ± 1.96 sqrt(n)) / 2 of the binomial distribution.
std::array<double, 2> interval_of_median(std::span<const double> sorted) {
  const auto n = static_cast<double>(sorted.size());
  const auto low = std::max(0.0, std::floor((n - 1.96 * std::sqrt(n)) / 2));
  const auto first = static_cast<std::size_t>(low);
  return {sorted[first], sorted[sorted.size() - 1 - first]};
}

/// Seconds between the starts of two calls, and their number.
struct Pace {
  double period;
  int repeats;
};
Pace warm_up(Group& group, Caller& caller, int repeats_asked) {
  constexpr double kMargin = 1.5, kPause = 2e-3;
  double longest = 0;
  for (int i = 0; i < kWarmups; ++i) {
    group.barrier();
    const double before = group.now();
    caller.call(before);
    longest = group.now() - before;  // of the last call: the first ones open connections
  }
  const auto all = group.gather({&longest, 1});
  for (const auto& seconds : all) longest = std::max(longest, seconds[0]);
  group.broadcast({&longest, 1});
  const double repeats = std::clamp(kBudget / longest, double{kMinRepeats}, double{kMaxRepeats});
  return {kMargin * longest + kPause, repeats_asked > 0 ? repeats_asked : static_cast<int>(repeats)};
}

}  // namespace

TimedCall time_call(Group& group, kernel::GpuExchange* gpu, const sim::Schedule& schedule, const std::string& what,
                    int repeats) {
  group.enter(what);
  Caller caller(group, gpu, schedule);
  const Pace pace = warm_up(group, caller, repeats);
  if (const std::string fault = caller.fault(); !fault.empty()) throw Failure(what + ": " + fault);
  double begin = group.now() + pace.period;
  group.broadcast({&begin, 1});
  std::vector<double> mine;
  for (int i = 0; i < pace.repeats; ++i) {
    const Caller::Times times = caller.call(begin + i * pace.period);
    mine.insert(mine.end(), {times.start, times.end, times.processor});
  }
  const auto all = group.gather(mine);
  if (const std::string fault = caller.fault(); !fault.empty()) throw Failure(what + ": " + fault);
  if (!group.is_first()) return {};

  TimedCall out{.repeats = pace.repeats};
  std::vector<double> times, spreads;
  for (std::size_t i = 0; i < mine.size(); i += 3) {
    double first = all[0][i], last = first, end = 0;
    for (const auto& rank : all) {
      first = std::min(first, rank[i]);
      last = std::max(last, rank[i]);
      end = std::max(end, rank[i + 1]);
      out.processor_s += rank[i + 2] / (pace.repeats * group.ranks());
    }
    times.push_back(end - first);
    spreads.push_back(last - first);
  }
  std::sort(times.begin(), times.end());
  std::sort(spreads.begin(), spreads.end());
  out.median_s = quantile(times, 0.5);
  const auto [low, high] = interval_of_median(times);
  out.low_s = low;
  out.high_s = high;
  out.spread_s = quantile(spreads, 0.5);
  return out;
}

namespace {

/// The time from the common start of all ranks to the last end, over the fabric's links.
Seconds predicted_time(const sim::FabricGraph& fabric, const sim::Schedule& schedule) {
  const sim::Job job{
      {sim::Communicator{{}, {{&schedule, std::vector<Seconds>(static_cast<std::size_t>(schedule.ranks()))}}}}};
  const sim::FoldedTimes times = sim::run_folded(fabric, {&job, 1});
  const auto& done = times.times[0][0][0].done;
  return *std::max_element(done.begin(), done.end());
}

constexpr std::int64_t kMaxRealBytes = std::int64_t{1} << 30;  // a message has at most 2^31 - 1 bytes

void check_request(const RealAllReduce& request) {
  const int processes = kernel::launched_processes();
  if (request.hosts.hosts == 0 && processes == 1)
    throw ConfigError(
        "--real: found one process, expected several: mpirun -n 4 ganymede allreduce --real ..., or --hosts 4");
  refuse_launched(request.hosts);
  if (request.hosts.hosts > 0 && request.fabric == nullptr)
    throw ConfigError("--hosts: expected --catalog and --instance, which say how slow the network is");
  if (request.hosts.hosts == 0 && request.fabric != nullptr && request.fabric->ranks() != processes)
    throw ConfigError(
        fmt::format("--real: started as {} processes, expected {}, one for each GPU of --nodes and "
                    "--gpus-per-node",
                    processes, request.fabric->ranks()));
  if (request.hosts.hosts > 0 && request.backend == "cuda")
    throw ConfigError("--backend: found cuda, expected cpu with --hosts, whose network is one of processes");
  if (request.is_fitted && (!request.has_links || request.hosts.hosts > 0))
    throw ConfigError("--output: expected --catalog and one --instance whose links are to be fitted, and no --hosts");
  if (request.is_fitted && std::set(request.sizes.begin(), request.sizes.end()).size() < 2)
    throw ConfigError("--bytes: found one size, expected two or more with --output, which fits latency and bandwidth");
  for (const std::int64_t bytes : request.sizes)
    if (bytes < 1 || bytes > kMaxRealBytes)
      throw ConfigError(fmt::format("--bytes: found {}, expected 1B to 1GiB with --real", bytes));
}

/// `scale`: how many times as long everything takes as on the machine that is predicted for.
OrderedJson row_json(const sim::Scheme& scheme, std::int64_t bytes, const sim::Schedule& schedule,
                     const TimedCall& call, const Group& group, const Ping& ping, double scale) {
  const double rate = static_cast<double>(bytes) / call.median_s / 1e9;
  return {{"scheme", scheme.name()},
          {"collective", "all-reduce"},
          {"ranks", group.ranks()},
          {"bytes", bytes},
          {"sent_bytes", schedule.bytes()},
          {"time_s", call.median_s},
          {"interval_s", {call.low_s, call.high_s}},
          {"predicted_s", nullptr},
          {"predicted_from_ping_s", nullptr},
          {"scale", scale},
          {"ping_bytes_per_s", ping.rate.si},
          {"ping_latency_s", ping.latency.si},
          {"algbw_GBps", rate},
          {"busbw_GBps", rate * sim::bus_bandwidth_factor(sim::Collective::all_reduce, group.ranks())},
          {"messages", schedule.messages()},
          {"fidelity", "real"},
          {"repeats", call.repeats},
          {"start_spread_s", call.spread_s},
          {"processor_s", call.processor_s}};
}

double from_ping(const Group& group, const Ping& ping, const sim::Schedule& schedule) {
  const PlainFabric fabric(group.ranks(), crowded(ping, schedule, shared_processors(group)));
  return predicted_time(fabric.graph(), schedule).si;
}

/// Says under which circumstances the times were measured. On a machine without GPUs nothing is said of GPUs.
std::string circumstances(const Group& group, const std::string& why_no_gpus) {
  std::string text = group.clock().same_machine ? "one machine and one clock"
                                                : "clocks agree within " + to_string(Seconds{group.clock().error_s});
  if (group.is_crowded()) text += "; more ranks than processors, which then wait for each other";
  if (!why_no_gpus.empty() && kernel::count_gpus().count > 0)
    text += "; messages between processes and not between GPUs: " + why_no_gpus;
  return text;
}

/// The schedules in the order of the rows: all sizes, and for each size all schemes.
struct PlannedCalls {
  sim::Topology topology;
  std::vector<sim::Schedule> schedules = {};
};

/// Plans before any rank is started, so that what cannot be planned is refused once and at once.
PlannedCalls plan_calls(const RealAllReduce& request) {
  const int ranks = request.hosts.hosts > 0 ? request.hosts.hosts : kernel::launched_processes();
  PlannedCalls out{request.fabric != nullptr ? request.fabric->topology()
                                             : sim::clustered(ranks, std::max(1, request.gpus_per_node))};
  for (const std::int64_t bytes : request.sizes)
    for (const sim::Scheme& scheme : request.schemes)
      out.schedules.push_back(plan_for_processes(scheme, out.topology, bytes));
  return out;
}

/// All schemes and sizes on all ranks; at rank 0 the result as text. `fabric` predicts, unless it is null, for a
/// network on which everything takes `scale` times as long.
std::string execute(const RealAllReduce& request, const PlannedCalls& calls, const sim::FabricGraph* fabric,
                    double scale, kernel::Messenger& messenger) {
  Group group(messenger);
  std::string why_no_gpus;
  const auto gpu = join_gpus(group, request.hosts.hosts > 0 ? "cpu" : request.backend, why_no_gpus);
  const std::string network = gpu != nullptr ? gpu->name() : messenger.name();
  group.enter("the ping");
  const Ping ping = measure_ping(group, gpu.get());
  std::function<void(std::size_t)> progress;
  if (group.is_first() && request.show) progress = request.show(request.schemes.size() * request.sizes.size());
  OrderedJson rows = OrderedJson::array();
  for (const std::int64_t bytes : request.sizes)
    for (const sim::Scheme& scheme : request.schemes) {
      const sim::Schedule& schedule = calls.schedules[rows.size()];
      const std::string what = fmt::format("{} of {}", scheme.name(), to_string(Bytes{static_cast<double>(bytes)}));
      const TimedCall call = time_call(group, gpu.get(), schedule, what, request.repeats);
      rows.push_back(row_json(scheme, bytes, schedule, call, group, ping, scale));
      if (progress) progress(rows.size());
    }
  if (!group.is_first()) return "";
  // Predicted when nobody waits for rank 0 any more.
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (fabric != nullptr) rows[i]["predicted_s"] = predicted_time(*fabric, calls.schedules[i]).si;
    if (calls.topology.nodes() == group.ranks())
      rows[i]["predicted_from_ping_s"] = from_ping(group, ping, calls.schedules[i]);
  }
  return OrderedJson{
      {"heading", fmt::format("{} {}, {}; every sum was right on every rank; {}", group.ranks(),
                              gpu != nullptr ? "GPUs" : "processes", network, circumstances(group, why_no_gpus))},
      {"ping", fmt::format("a ping between two ranks found {} and {}", to_string(ping.rate), to_string(ping.latency))},
      {"messenger", network},
      {"scale", scale},
      {"rows", rows}}
      .dump();
}

}  // namespace

OrderedJson real_allreduce(const RealAllReduce& request, const Remark& remark) {
  check_request(request);
  const PlannedCalls calls = plan_calls(request);
  std::string text;
  if (request.hosts.hosts == 0) {
    const auto messenger = kernel::open_messenger();
    text = execute(request, calls, request.fabric, 1, *messenger);
  } else {
    const HostsNetwork network = network_of_hosts(request.hosts, *request.fabric, remark);
    const PlainFabric stated(request.hosts.hosts, network.stated);
    text = run_on_hosts(request.hosts, network, [&](kernel::Messenger& messenger) {
      return execute(request, calls, &stated.graph(), network.scale, messenger);
    });
  }
  return text.empty() ? OrderedJson(nullptr) : OrderedJson::parse(text);
}

}  // namespace ganymede::rehearsal
