// Services against queueing formulas, Kubernetes' rule of scaling, and what must hold for any.

#include "sim/service/service.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <numeric>

#include "service_files.hpp"
#include "sim/service/service_result.hpp"
#include "sim/service/service_simulation.hpp"
#include "support/temporary_folder.hpp"
#include "support/when.hpp"

namespace ganymede::sim {
namespace {

ServiceRecord life_of(const Service& service) { return simulate_service(service, service.times.central_s); }

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// Probabilities of 0, 1, ... arrivals of a Poisson process with this mean.
std::vector<double> poisson(double mean, std::size_t count) {
  std::vector<double> out = {std::exp(-mean)};
  for (std::size_t i = 1; i < count; ++i) out.push_back(out.back() * mean / static_cast<double>(i));
  return out;
}

/// The stationary distribution of a chain in which `left` of the state's customers stay and Poisson arrivals join them.
std::vector<double> stationary(double arrivals, const auto& left) {
  constexpr std::size_t kStates = 400;
  const std::vector<double> joins = poisson(arrivals, kStates);
  std::vector<double> now(kStates, 1.0 / kStates);
  for (int round = 0; round < 3000; ++round) {
    std::vector<double> next(kStates, 0);
    for (std::size_t state = 0; state < kStates; ++state)
      for (std::size_t more = 0; left(state) + more < kStates && more < 40; ++more)
        next[left(state) + more] += now[state] * joins[more];
    now = std::move(next);
  }
  return now;
}

// M/D/c (Crommelin 1932): of the customers at any moment, those in service are gone one service time later, and the
// others wait or are served with those that have arrived meanwhile. Little's law turns their number into a wait.
TEST(Service, WaitsAsAQueueOfSeveralServersDoes) {
  NOT_SANITIZED("looks at means of a million requests");
  constexpr double kRate = 80, kService_s = 0.02;
  for (const std::size_t gpus : {2U, 4U}) {
    const double rate = kRate * static_cast<double>(gpus) / 2;
    const auto left = [&](std::size_t state) { return state > gpus ? state - gpus : 0; };
    const std::vector<double> states = stationary(rate * kService_s, left);
    double waiting = 0;
    for (std::size_t state = 0; state < states.size(); ++state)
      waiting += states[state] * static_cast<double>(left(state));
    Json document = service_document(R"({"duration": "4h"})");
    document["platform"]["nodes"] = gpus, document["arrivals"]["per_second"] = rate;
    const ServiceRecord life = life_of(read_service(JsonNode::wrap(document, "service.json", ".")));
    EXPECT_NEAR(mean_of(life.latencies_s), kService_s + waiting / rate, 0.02 * (waiting / rate)) << gpus;
    EXPECT_NEAR(life.busy_s / life.ready_s, 0.8, 0.005);
  }
}

// Batches of at most 8 that take 20 ms whatever their size, begun whenever the GPU is free (Bailey 1954): the number
// that wait when a batch ends is a chain, and the time between two ends is 20 ms, or longer by the time to an arrival.
TEST(Service, WaitsAsAQueueThatIsServedInBatchesDoes) {
  constexpr double kRate = 300, kService_s = 0.02;
  constexpr std::size_t kLargest = 8;
  const auto left = [](std::size_t state) { return std::max<std::size_t>(state, 1) > kLargest ? state - kLargest : 0; };
  const std::vector<double> states = stationary(kRate * kService_s, left);
  double area = 0, cycle_s = 0;
  for (std::size_t state = 0; state < states.size(); ++state) {
    area += states[state] * kService_s * (static_cast<double>(left(state)) + kRate * kService_s / 2);
    cycle_s += states[state] * (kService_s + (state == 0 ? 1 / kRate : 0));
  }
  const double wait_s = area / cycle_s / kRate;
  const Service service = service_of(R"({"generator": {"measured": {"1": "20ms", "8": "20ms"}},
      "batching": {"largest": 8}, "arrivals": {"per_second": 300}, "duration": "2h"})");
  EXPECT_NEAR(mean_of(life_of(service).latencies_s), kService_s + wait_s, 0.02 * wait_s);
}

TEST(Service, WaitsForABatchNoLongerThanTheWindow) {
  const Service service = service_of(R"({"generator": {"measured": {"1": "10ms", "4": "10ms"}},
      "batching": {"largest": 4, "window": "50ms"}, "arrivals": {"per_second": 4, "pattern": "even"}, "overhead": "1ms"})");
  for (const double latency : life_of(service).latencies_s) EXPECT_NEAR(latency, 0.061, 1e-9);
  const Service full = service_of(R"({"generator": {"measured": {"1": "10ms", "4": "10ms"}},
      "batching": {"largest": 4, "window": "50s"}, "arrivals": {"per_second": 4, "pattern": "even"}, "duration": "1001s"})");
  const ServiceRecord life = life_of(full);
  EXPECT_EQ(life.batches, 1001);
  EXPECT_NEAR(mean_of(life.latencies_s), 0.01 + (0.75 + 0.5 + 0.25) / 4, 1e-3);  // the last batch is not full
}

// A load of one GPU at a goal of half a GPU's time wants two replicas at the first look. From 120 s on, a tenth of the
// load wants one. What was wanted at 120 s counts until the window of 300 s is over, so that the look at 420 s ends
// one.
TEST(Service, ScalesAsKubernetesDoes) {
  std::string rows = "t_s\n";
  for (int i = 0; i < 12000; ++i) rows += std::to_string(0.01 * i) + "\n";
  for (int i = 0; i < 6000; ++i) rows += std::to_string(120 + 0.1 * i) + "\n";
  const TemporaryFolder folder;
  Json document = service_document(R"({"generator": {"measured": {"1": "10ms"}},
      "autoscaling": {"min": 1, "max": 5, "utilization": 0.5}, "arrivals": null, "duration": "720s"})");
  document["arrivals"]["recorded"] = folder.add("requests.csv", rows).string();
  const ServiceRecord life = life_of(read_service(JsonNode::wrap(document, "service.json", ".")));
  ASSERT_EQ(life.rentals.size(), 2U);
  EXPECT_EQ(life.most_replicas, 2);
  EXPECT_EQ(life.starts, 1);
  // It kept the older replica, and ended the one that was asked for at 15 s.
  EXPECT_EQ(life.rentals[0].to, 720'000'000'000);
  EXPECT_EQ(life.rentals[1].to, 420'000'000'000);
  EXPECT_GE(life.rentals[1].from, 15'000'000'000);
}

// The controller takes the replicas that it finds as wanted, so that they stay for a window of 300 s from its first
// look.
TEST(Service, KeepsTheFirstReplicasForAWindow) {
  const Service service =
      service_of(R"({"platform": {"nodes": 10}, "autoscaling": {"min": 1, "max": 10, "utilization": 0.5},
      "arrivals": {"pattern": "even"}, "duration": "600s"})");
  const ServiceRecord life = life_of(service);
  ASSERT_EQ(life.rentals.size(), 10U);
  EXPECT_EQ(life.rentals[0].to, 600'000'000'000);
  for (std::size_t i = 1; i < 10; ++i) EXPECT_EQ(life.rentals[i].to, 315'000'000'000) << i;
}

TEST(Service, AddsAtMostFourOrAsManyReplicasAsThereAre) {
  // A hundred times the load of one replica, which 50 requests for each of 100 wait for.
  const Service service = service_of(R"({"autoscaling": {"min": 1, "max": 100, "queue": 50},
      "arrivals": {"per_second": 5000, "pattern": "even"}, "duration": "32s"})");
  EXPECT_EQ(life_of(service).starts, 4 + 5);  // at 15 s to 5, at 30 s to 10
}

TEST(Service, LosesOnlyWhatTheNoticeLeavesNoTimeFor) {
  NOT_SANITIZED("looks at millions of requests; AccountsForEachRequestAndEachSecond draws some with such notices");
  const char* spot = R"({"platform": {"market": "spot", "nodes": 4, "notice": "0s", "lifetimes": {"mean": "10min"}},
      "arrivals": {"per_second": 150}, "duration": "5h", "timeout": "1s"})";
  const ServiceRecord abrupt = life_of(service_of(spot));
  // Four replicas that live for ten minutes on average, less the time until another one is there.
  EXPECT_NEAR(abrupt.reclaims, 4 * 30, 40);
  EXPECT_GT(abrupt.lost, abrupt.reclaims / 4);
  EXPECT_LE(abrupt.lost, abrupt.reclaims);
  Json noticed = service_document(spot);
  noticed["platform"]["notice"] = "2min";
  EXPECT_EQ(life_of(read_service(JsonNode::wrap(noticed, "service.json", "."))).lost, 0);
}

TEST(Service, IsBilledForReplicasAndData) {
  // Two p3.2xlarge at 3.06 USD/h for half an hour; 18,000 images of 1 MB.
  const documents::ServiceResult result =
      serve(service_of(R"({"platform": {"nodes": 2}, "arrivals": {"pattern": "even"}, "duration": "30min",
                           "bytes_per_image": 1000000})"));
  EXPECT_EQ(result.bill.front().usd.value, 3'060'000);
  EXPECT_EQ(result.bill.back().item, "egress");
  EXPECT_NEAR(result.bill.back().quantity, 18.0, 0.01);
  MicroUsd sum;
  for (const documents::BillItem& item : result.bill) sum += item.usd;
  EXPECT_EQ(sum, result.total);
  EXPECT_NEAR(result.usd_per_1000, static_cast<double>(sum.value) * 1e-6 / 18, 1e-3);
}

TEST(Service, TakesTheGeneratorsForwardPass) {
  const auto times = [](const char* instance, const char* generator) {
    Json document = service_document(R"({"batching": {"largest": 64}})");
    document["platform"]["instance"] = instance;
    document["generator"] = Json::parse(generator);
    return read_service(JsonNode::wrap(document, "service.json", ".")).times;
  };
  const GeneratorTimes v100 = times("p3.2xlarge", R"({"recipe": "stylegan2?image=256"})");
  const GeneratorTimes t4 = times("g4dn.xlarge", R"({"recipe": "stylegan2?image=256"})");
  ASSERT_EQ(v100.central_s.size(), 64U);
  EXPECT_THAT(v100.how, testing::HasSubstr("stylegan2"));
  for (std::size_t i = 0; i < 64; ++i) {
    EXPECT_LT(v100.low_s[i], v100.central_s[i]);
    EXPECT_LT(v100.central_s[i], v100.high_s[i]);
    EXPECT_LE(v100.central_s[i], t4.central_s[i]);
    EXPECT_GE(v100.central_s[i], v100.central_s[i > 0 ? i - 1 : 0]);
  }
  // Whatever the program, 64 images of some 14 GMAC take no less than a quarter of their time at the peak in fp32.
  EXPECT_GT(v100.central_s[63], 64 * 2 * 14e9 / 15.7e12 / 4);
  const GeneratorTimes line = times("p3.2xlarge", R"({"measured": {"2": "4ms", "4": "8ms"}})");
  EXPECT_DOUBLE_EQ(line.central_s[0], 0.004);
  EXPECT_DOUBLE_EQ(line.central_s[2], 0.006);
  EXPECT_DOUBLE_EQ(line.central_s[9], 0.020);
}

RC_GTEST_PROP(Service, AccountsForEachRequestAndEachSecond, ()) {
  Json document = service_document(R"({"duration": "10min", "timeout": "1s"})");
  document["seed"] = *rc::gen::inRange(1, 1000);
  document["arrivals"] = {
      {"per_second", *rc::gen::inRange(1, 200)}, {"swing", *rc::gen::element(0.0, 0.5, 1.0)}, {"period", "5min"}};
  document["platform"]["nodes"] = *rc::gen::inRange(1, 4);
  document["queue"] = *rc::gen::element(0, 3, 1000);
  document["batching"] = {{"largest", *rc::gen::inRange(1, 9)}, {"window", *rc::gen::element("0s", "5ms", "1s")}};
  if (*rc::gen::arbitrary<bool>())
    document["autoscaling"] = {{"min", 1}, {"max", 6}, {"utilization", *rc::gen::element(0.3, 0.7)}};
  if (*rc::gen::arbitrary<bool>()) {
    document["platform"]["market"] = "spot";
    document["platform"]["notice"] = *rc::gen::element("0s", "30s");
    document["platform"]["lifetimes"] = {{"mean", "3min"}, {"back_after", *rc::gen::element("0s", "1min")}};
  }
  const Service service = read_service(JsonNode::wrap(document, "service.json", "."));
  const documents::ServiceResult result = serve(service);
  const documents::ServiceRequests& requests = result.requests;
  RC_ASSERT(requests.arrived == requests.served + requests.refused + requests.timed_out + requests.lost);
  const documents::ServiceLatency& latency = result.latency;  // no numbers, where nothing was served
  RC_ASSERT(requests.served == 0 || latency.p50 <= latency.p95);
  RC_ASSERT(requests.served == 0 || latency.p95 <= latency.p99);
  RC_ASSERT(requests.served == 0 || latency.p99 <= latency.most);
  RC_ASSERT(requests.served == 0 || latency.most <= 1 + 0.02 * 8 + 1e-9);
  RC_ASSERT(result.utilization >= 0 && result.utilization <= 1);
  const ServiceRecord life = life_of(service);
  RC_ASSERT(life.busy_s <= life.ready_s * (1 + 1e-9));
  for (const Rental& rental : life.rentals) RC_ASSERT(rental.from <= rental.to && rental.to <= 600'000'000'000);
  RC_ASSERT(documents::service_result_text(result) == documents::service_result_text(serve(service)));
}

}  // namespace
}  // namespace ganymede::sim
