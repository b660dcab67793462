#include "report/groups.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "common/json_value.hpp"
#include "report/numbers.hpp"
#include "report/table.hpp"

namespace ganymede::report {
namespace {
std::string member(const Json& object, const char* name) { return object.at(name).get<std::string>(); }

std::string place_of(const Json& group) { return member(group, "platform") + ", " + member(group, "allocation"); }

/// The median and the interval over the seeds; the 5th and 95th percentile for a quantity without a stated error.
std::string format_quantiles(const Json& values, auto&& shown) {
  const bool stated = values.contains("interval");
  const Json& low = stated ? values.at("interval").at(0) : values.at("p5");
  const Json& high = stated ? values.at("interval").at(1) : values.at("p95");
  return fmt::format("{} ({} .. {})", shown(values.at("median").template get<double>()),
                     shown(low.template get<double>()), shown(high.template get<double>()));
}

std::string hours(double value) { return fmt::format("{:.2f}", value); }

/// The images to a group's FID, and the chance never to get there; nothing for a group that trains a number of images.
std::vector<std::string> quality_cells(const Json& group) {
  if (!group.contains("quality")) return {"-", "-", "-"};
  const Json& quality = group.at("quality");
  const Json& images = quality.at("images");
  const auto number = [&](const Json& value) { return fmt::format("{:.3g}", value.get<double>()); };
  return {number(quality.at("fid")),
          fmt::format("{} ({} .. {})", number(images.at("median")), number(images.at("interval").at(0)),
                      number(images.at("interval").at(1))),
          percent(quality.at("never").get<double>())};
}

std::string ranking_text(const Json& ranking, const std::set<std::string>& parted, std::size_t width) {
  std::string out = fmt::format("\n{}, {}, {}:\n", member(ranking, "platform"), allocation_of(ranking, parted),
                                member(ranking, "scheme"));
  Table table({"by", ">place", "policy", ">median", "difference", ""});
  for (const auto& [key, name] : {std::pair{"time_s", "time"}, std::pair{"usd", "cost"},
                                  std::pair{"gpu_hours", "GPU-hours"}, std::pair{"kg_co2e", "kg CO2e"}}) {
    int place = 0;
    if (place == 0 && std::string_view(key) != "time_s") table.rule();
    for (const Json& row : ranking.at(key)) {
      const double median = row.at("median").get<double>();
      const std::string shown = std::string_view(key) == "time_s" ? clock(median)
                                : std::string_view(key) == "usd"  ? usd(median) + " USD"
                                                                  : hours(median);
      std::string difference = "reference", noise;
      if (const Json& d = row.at("difference"); d.is_object()) {
        difference = fmt::format("{:+.1f} % ({:+.1f} .. {:+.1f}) to {}", 100 * relative_difference(d),
                                 100 * d.at("interval").at(0).get<double>(), 100 * d.at("interval").at(1).get<double>(),
                                 member(row, "against"));
        noise = d.at("beyond_noise").get<bool>() ? "" : "within the noise";
      } else if (member(row, "policy") != member(row, "against")) {
        difference = "too few seeds to tell";
      }
      table.add({place == 0 ? name : "", std::to_string(place + 1), member(row, "policy"), shown, difference, noise});
      ++place;
    }
  }
  return out + table.text(width);
}

}  // namespace

double relative_difference(const Json& difference) {
  return difference.at(difference.contains("median") ? "median" : "mean").get<double>();
}

std::set<std::string> parted_places(const Json& sweep) {
  std::map<std::string, Json> first;
  std::set<std::string> parted;
  if (!sweep.contains("groups")) return parted;
  for (const Json& group : sweep.at("groups")) {
    if (!group.contains("gpus_per_node")) continue;
    const Json& own = group.at("gpus_per_node");
    if (first.try_emplace(place_of(group), own).first->second != own) parted.insert(place_of(group));
  }
  return parted;
}

std::string allocation_of(const Json& group, const std::set<std::string>& parted) {
  const std::string out = member(group, "allocation");
  return group.contains("gpus_per_node") && parted.contains(place_of(group))
             ? out + of_each_node(group.at("gpus_per_node"))
             : out;
}

std::string of_each_node(const Json& gpus_per_node) {
  if (!gpus_per_node.is_array()) return fmt::format(", {} GPUs of each", gpus_per_node.dump());
  std::string all;
  for (const Json& gpus : gpus_per_node) all += (all.empty() ? "" : " and ") + gpus.dump();
  return fmt::format(", {} GPUs of each", all);
}

std::string groups_text(const Json& sweep, std::size_t width) {
  double longest = 0, most_lost = 0;
  for (const Json& group : sweep.at("groups")) {
    const Json& time = group.at("time_s");
    longest = std::max(longest, (time.contains("interval") ? time.at("interval").at(1) : time.at("p95")).get<double>());
    most_lost = std::max(most_lost, group.at("lost_training_s_mean").get<double>());
  }
  std::vector<std::string> names = {"platform",   "instances", "USD",     "time",  "scheme", "policy",
                                    ">goals met", "GPU-hours", ">losses", ">lost", ">seeds"};
  const Json& groups = sweep.at("groups");
  const bool to_fid =
      std::any_of(groups.begin(), groups.end(), [](const Json& group) { return group.contains("quality"); });
  if (to_fid) names.insert(names.end(), {">FID", "images to it", ">never"});
  Table table(names);
  const std::set<std::string> parted = parted_places(sweep);
  for (const Json& group : groups) {
    std::vector<std::string> row = {
        member(group, "platform") + (member(group, "market") == "on-demand" ? "" : " " + member(group, "market")),
        allocation_of(group, parted),
        format_quantiles(group.at("usd"), usd),
        format_quantiles(group.at("time_s"), [&](double seconds) { return clock_like(seconds, longest); }),
        member(group, "scheme"),
        member(group, "policy"),
        percent(group.at("met_share").get<double>()),
        format_quantiles(group.at("gpu_hours"), hours),
        fmt::format("{:.1f}", group.at("losses_mean").get<double>()),
        clock_like(group.at("lost_training_s_mean").get<double>(), most_lost),
        group.at("runs").dump()};
    if (to_fid)
      for (std::string& cell : quality_cells(group)) row.push_back(std::move(cell));
    table.add(std::move(row));
  }
  std::string out =
      table.text_below_constants(width) +
      "\nmedian (5th percentile of the runs' low ends .. 95th of their high ends) over the seeds; losses and lost "
      "training: means\n";
  if (to_fid)
    out +=
        "time and USD are those of the median training that gets to its FID; images to it: median (90 % of these); "
        "never: the share that does not get there\n";
  for (const Json& ranking : sweep.at("rankings")) out += ranking_text(ranking, parted, width);
  return out + "\n";
}

}  // namespace ganymede::report
