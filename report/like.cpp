#include "report/like.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/json_value.hpp"
#include "report/plans.hpp"
#include "report/table.hpp"

namespace ganymede::report {

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
