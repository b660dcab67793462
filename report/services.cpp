#include "report/services.hpp"

#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "common/text.hpp"
#include "common/units.hpp"
#include "common/usd.hpp"
#include "report/numbers.hpp"
#include "report/table.hpp"

namespace ganymede::report {
namespace {

/// "-" for no number, where nothing was served.
std::string time(double seconds) { return std::isnan(seconds) ? "-" : to_string(Seconds{seconds}); }
std::string usd_per_1000(double usd) { return std::isfinite(usd) ? fmt::format("{:.4g}", usd) : "-"; }

}  // namespace

std::string service_text(const documents::ServiceResult& result, std::size_t width) {
  const documents::ServiceRequests& requests = result.requests;
  const documents::ServiceLatency& latency = result.latency;
  const documents::ServiceReplicas& replicas = result.replicas;
  std::string out = fmt::format(
      "{} {}, {} x {} ({} x {} each), {}: {} images/s in {}\n"
      "p95 {}{}; {} of requests failed; {} USD for 1,000 images\n\n",
      result.provider, result.region,
      replicas.first == replicas.most ? std::to_string(replicas.most)
                                      : fmt::format("{} to {}", replicas.first, replicas.most),
      result.instance, result.gpus_per_replica, result.gpu, result.market, shown_rate(result.images_per_s),
      clock(result.duration), time(latency.p95),
      spoken_range(latency.p95_interval.low, latency.p95_interval.high, time), percent(requests.failed),
      usd_per_1000(result.usd_per_1000));
  Table table({"what", ">value"});
  const auto add = [&](const char* what, std::string value) { table.add({what, std::move(value)}); };
  for (const auto& [name, seconds] : {std::pair("latency, mean", latency.mean),
                                      {"latency, p50", latency.p50},
                                      {"latency, p95", latency.p95},
                                      {"latency, p99", latency.p99},
                                      {"latency, longest", latency.most}})
    add(name, time(seconds));
  table.rule();
  for (const auto& [name, count] : {std::pair("requests", requests.arrived),
                                    {"served", requests.served},
                                    {"refused, the queue was full", requests.refused},
                                    {"timed out", requests.timed_out},
                                    {"lost with their replica", requests.lost}})
    add(name, with_thousands(count));
  add("images in a batch, mean", fmt::format("{:.3g}", result.mean_batch));
  table.rule();
  add("GPUs busy", percent(result.utilization));
  add("replicas ready, mean", fmt::format("{:.4g}", replicas.mean));
  add("replicas started later", std::to_string(replicas.starts));
  add("replicas taken back", std::to_string(replicas.reclaims));
  table.rule();
  for (const documents::BillItem& item : result.bill) add(item.item.c_str(), usd_cell(decimal(item.usd)) + " USD");
  add("bill", usd_cell(decimal(result.total)) + " USD");
  out += table.text(width);
  out += "\n" +
         wrap_prose(fmt::format("A batch of 1 takes {}, one of {} {}: {}.", time(result.batch_1_s),
                                result.largest_batch, time(result.largest_batch_s), result.times),
                    width) +
         "\n";
  for (const std::string& missed : result.goals.missed) out += "goal missed: " + missed + "\n";
  for (const std::string& warning : result.warnings) out += wrap_prose("warning: " + warning, width) + "\n";
  return out;
}

std::string service_csv(const documents::ServiceResult& result) {
  return csv_of(std::vector{result}, [](const documents::ServiceResult& row) {
    const auto number = [](double value) { return fmt::format("{:.6g}", value); };
    return NamedCells{{"provider", row.provider},
                      {"region", row.region},
                      {"market", row.market},
                      {"instance", row.instance},
                      {"gpu", row.gpu},
                      {"duration_s", number(row.duration)},
                      {"arrived", std::to_string(row.requests.arrived)},
                      {"served", std::to_string(row.requests.served)},
                      {"failed_share", number(row.requests.failed)},
                      {"mean_s", number(row.latency.mean)},
                      {"p50_s", number(row.latency.p50)},
                      {"p95_s", number(row.latency.p95)},
                      {"p99_s", number(row.latency.p99)},
                      {"images_per_second", number(row.images_per_s)},
                      {"utilization", number(row.utilization)},
                      {"replicas_mean", number(row.replicas.mean)},
                      {"replicas_max", std::to_string(row.replicas.most)},
                      {"reclaims", std::to_string(row.replicas.reclaims)},
                      {"usd", decimal(row.total)},
                      {"usd_per_1000_images", number(row.usd_per_1000)}};
  });
}

std::string service_plan_text(const documents::ServicePlan& plan, std::size_t width) {
  constexpr std::size_t kShown = 12;
  const std::string goal =
      fmt::format("{} requests/s with a p95 of at most {}", shown_rate(plan.per_second), time(plan.p95));
  if (plan.offers.empty())
    return wrap_prose(fmt::format("Nothing of {} offers answers {}.", plan.offers_searched, goal), width) + "\n";
  const documents::ServiceOffer& first = plan.offers.front();
  std::string out = wrap_prose(
      fmt::format("Rent {} x {} ({} {}, {}): {:.4g} USD/h, {:.3g} USD for 1,000 images; p95 {}{}; GPUs busy {}; "
                  "batches of up to {}.",
                  first.nodes, first.instance, first.provider, first.region, first.market, first.usd_per_hour,
                  first.usd_per_1000, time(first.p95),
                  spoken_range(first.p95_interval.low, first.p95_interval.high, time), percent(first.utilization),
                  first.largest_batch),
      width);
  Table table(
      {"GPU", "rented", "where", "market", ">USD/h", ">USD/1,000", ">p95", "90 %", ">busy", ">batch", "prices of"});
  for (const documents::ServiceOffer& offer : plan.offers) {
    if (table.size() == kShown) break;
    table.add({offer.gpu, fmt::format("{} x {}", offer.nodes, offer.instance), offer.provider + " " + offer.region,
               offer.market, fmt::format("{:.4g}", offer.usd_per_hour), fmt::format("{:.3g}", offer.usd_per_1000),
               time(offer.p95), fmt::format("{} .. {}", time(offer.p95_interval.low), time(offer.p95_interval.high)),
               percent(offer.utilization), std::to_string(offer.largest_batch), offer.prices_of});
  }
  out += "\n\n" + table.text(width) + "\n";
  std::string words = fmt::format(
      "The cheapest of each GPU that answers {}, also at the upper end of the generator's times; at most 0.1 % may "
      "fail. {} services of {} offers were simulated for {} each. Times: {}.",
      goal, plan.simulated, plan.offers_searched, clock(plan.simulated_s), plan.generator);
  for (const std::string& note : plan.notes) words += " Note: " + note + ".";
  return out + wrap_prose(words, width) + "\n";
}

std::string service_plan_csv(const documents::ServicePlan& plan) {
  return csv_of(plan.offers, [](const documents::ServiceOffer& offer) {
    const auto number = [](double value) { return fmt::format("{:.6g}", value); };
    return NamedCells{{"gpu", offer.gpu},
                      {"provider", offer.provider},
                      {"region", offer.region},
                      {"market", offer.market},
                      {"instance", offer.instance},
                      {"nodes", std::to_string(offer.nodes)},
                      {"largest_batch", std::to_string(offer.largest_batch)},
                      {"usd_per_hour", number(offer.usd_per_hour)},
                      {"usd_per_1000_images", number(offer.usd_per_1000)},
                      {"p95_s", number(offer.p95)},
                      {"p95_low_s", number(offer.p95_interval.low)},
                      {"p95_high_s", number(offer.p95_interval.high)},
                      {"utilization", number(offer.utilization)},
                      {"prices_of", offer.prices_of}};
  });
}

}  // namespace ganymede::report
