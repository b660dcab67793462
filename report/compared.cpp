#include "report/compared.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/json_value.hpp"
#include "report/numbers.hpp"
#include "report/plans.hpp"
#include "report/table.hpp"

namespace ganymede::report {
namespace {

std::string nodes_and_gpus(const documents::PlanRow& row) {
  return fmt::format("{} ({} x {})", plan_nodes(row), row.gpus, row.gpu);
}

/// The rows, those that meet the goals first and then by cost.
std::vector<const Compared*> by_goals_and_cost(const std::vector<Compared>& all) {
  std::vector<const Compared*> rows;
  for (const Compared& one : all) rows.push_back(&one);
  const auto rank = [](const Compared* one) {
    if (!one->row) return std::pair(2, 0.0);
    return std::pair(one->row->verdict == "meets" ? 0 : 1, one->row->simulated() ? one->row->usd.median : 1e300);
  };
  std::stable_sort(rows.begin(), rows.end(), [&](const Compared* a, const Compared* b) { return rank(a) < rank(b); });
  return rows;
}

}  // namespace

std::string compared_text(const std::vector<Compared>& all, const std::string& today, std::size_t width) {
  Table table(
      {"asked", "rented", "where", ">USD", "90 %", ">price age", ">hours", "90 %", ">images/s", ">GPU busy", "goals"});
  std::string reasons;
  for (const Compared* one : by_goals_and_cost(all)) {
    if (!one->row || !one->row->simulated()) {
      reasons += fmt::format("{}: {}\n", one->name, one->row ? one->row->reason : one->reason);
      continue;
    }
    const documents::PlanRow& row = *one->row;
    table.add({one->name, nodes_and_gpus(row), plan_place(row), fmt::format("{:.2f}", row.usd.median),
               fmt::format("{:.2f} .. {:.2f}", row.usd.interval.low, row.usd.interval.high),
               price_age(row.prices_as_of, today), fmt::format("{:.4g}", row.time_s.median / 3600),
               fmt::format("{:.4g} .. {:.4g}", row.time_s.interval.low / 3600, row.time_s.interval.high / 3600),
               row.images_per_s ? shown_rate(*row.images_per_s) : "", fmt::format("{:.0f} %", 100 * row.gpu_busy),
               row.verdict});
  }
  std::string out = table.size() > 0 ? table.text(width) : "";
  if (!reasons.empty()) out += (out.empty() ? "" : "\n") + wrap_prose(reasons, width);
  return out;
}

std::string compared_csv(const std::vector<Compared>& all) {
  return csv_of(all, [](const Compared& one) {
    const documents::PlanRow row = one.row.value_or(documents::PlanRow{});
    const bool known = one.row && row.simulated();
    const auto number = [&](double value) { return known ? fmt::format("{:.6g}", value) : ""; };
    return NamedCells{{"name", one.name},
                      {"provider", row.provider},
                      {"region", row.region},
                      {"market", row.market},
                      {"instance", row.instance},
                      {"nodes", one.row ? std::to_string(row.nodes) : ""},
                      {"gpu", row.gpu},
                      {"gpus", one.row ? std::to_string(row.gpus) : ""},
                      {"prices_as_of", row.prices_as_of},
                      {"usd", number(row.usd.median)},
                      {"usd_low", number(row.usd.interval.low)},
                      {"usd_high", number(row.usd.interval.high)},
                      {"time_s", number(row.time_s.median)},
                      {"time_low_s", number(row.time_s.interval.low)},
                      {"time_high_s", number(row.time_s.interval.high)},
                      {"images_per_s", number(row.images_per_s.value_or(0))},
                      {"gpu_busy", number(row.gpu_busy)},
                      {"verdict", one.row ? row.verdict : "cannot run"}};
  });
}

std::string compared_json(const std::vector<Compared>& all) {
  OrderedJson rows = OrderedJson::array();
  for (const Compared& one : all) {
    OrderedJson row = {{"name", one.name}};
    if (one.row)
      row["row"] = documents::row_json(*one.row);
    else
      row["reason"] = one.reason;
    rows.push_back(std::move(row));
  }
  return OrderedJson{{"schema", "ganymede.compare/1"}, {"rows", rows}}.dump(2) + "\n";
}

std::string like_text(const LikeAnswer& answer, const std::string& today, std::size_t width) {
  std::string out = fmt::format("{}: {} x {} {}{}", answer.format, answer.nodes, answer.gpus_per_node,
                                answer.gpu.empty() ? "GPUs" : answer.gpu, answer.spot ? ", spot" : "");
  const auto asked =
      std::find_if(answer.offers.begin(), answer.offers.end(), [](const LikeOffer& offer) { return offer.asked; });
  const auto total = [&](const LikeOffer& offer) {
    return answer.hours > 0 ? fmt::format("{:.2f}", offer.usd_per_hour * answer.hours) : "";
  };
  if (asked != answer.offers.end())
    out += fmt::format("; {:.2f} USD/h{} as it asks", asked->usd_per_hour,
                       answer.hours > 0 ? fmt::format(", {} USD in {:.4g} h,", total(*asked), answer.hours) : "");
  out += ".\n";
  if (!answer.offers.empty() && !answer.offers.front().asked && asked != answer.offers.end()) {
    const LikeOffer& first = answer.offers.front();
    out +=
        fmt::format("Cheaper: {:.2f} USD/h with {} x {} ({} {} {}); such GPUs are as fast and have as much memory.\n",
                    first.usd_per_hour, first.nodes, first.instance, first.provider, first.region, first.market);
  }
  for (const std::string& note : answer.notes) out += note + "\n";
  Table table({"rented", "GPUs", "where", "market", ">USD/h", ">USD", ">price age", "asked"});
  for (const LikeOffer& offer : answer.offers)
    table.add({fmt::format("{} x {}", offer.nodes, offer.instance), fmt::format("{} x {}", offer.gpus, offer.gpu),
               offer.provider + " " + offer.region, offer.market, fmt::format("{:.2f}", offer.usd_per_hour),
               total(offer), price_age(offer.as_of, today), offer.asked ? "yes" : ""});
  return wrap_prose(out, width) + "\n" + table.text(width);
}

std::string like_csv(const LikeAnswer& answer) {
  return csv_of(answer.offers, [](const LikeOffer& offer) {
    return NamedCells{{"provider", offer.provider},
                      {"region", offer.region},
                      {"market", offer.market},
                      {"instance", offer.instance},
                      {"nodes", std::to_string(offer.nodes)},
                      {"gpu", offer.gpu},
                      {"gpus", std::to_string(offer.gpus)},
                      {"usd_per_hour", fmt::format("{:.6g}", offer.usd_per_hour)},
                      {"as_of", offer.as_of},
                      {"asked", offer.asked ? "yes" : "no"}};
  });
}

std::string like_json(const LikeAnswer& answer) {
  OrderedJson offers = OrderedJson::array();
  for (const LikeOffer& offer : answer.offers)
    offers.push_back({{"provider", offer.provider},
                      {"region", offer.region},
                      {"market", offer.market},
                      {"instance", offer.instance},
                      {"nodes", offer.nodes},
                      {"gpu", offer.gpu},
                      {"gpus", offer.gpus},
                      {"usd_per_hour", offer.usd_per_hour},
                      {"as_of", offer.as_of},
                      {"asked", offer.asked}});
  const OrderedJson out = {{"schema", "ganymede.like/1"}, {"format", answer.format},
                           {"gpu", answer.gpu},           {"gpus_per_node", answer.gpus_per_node},
                           {"nodes", answer.nodes},       {"spot", answer.spot},
                           {"hours", answer.hours},       {"offers", offers},
                           {"notes", answer.notes}};
  return out.dump(2) + "\n";
}

}  // namespace ganymede::report
