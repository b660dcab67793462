// ganymede list: the identifiers that work, each from the table of the code that implements it.

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <set>

#include "calibration/kernels/gpu_sheets.hpp"
#include "cli/command.hpp"
#include "cli/names.hpp"
#include "cli/terminal.hpp"
#include "common/embedded.hpp"
#include "common/errors.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "common/text.hpp"
#include "common/units.hpp"
#include "kernel/models/models.hpp"
#include "platforms/catalog.hpp"
#include "policies/policy.hpp"
#include "policies/schedulers/placement.hpp"
#include "policies/schedulers/scheduler.hpp"
#include "report/table.hpp"
#include "sim/collectives/allreduce.hpp"

namespace ganymede::cli {
namespace {

struct Row {
  std::string name, summary;
};
using Rows = std::vector<Row>;

template <class Table>
Rows rows_of(const Table& table) {
  Rows rows;
  for (const auto& item : table) rows.push_back({std::string(item.name), std::string(item.summary)});
  return rows;
}

Rows schemes() {
  Rows rows;
  for (const auto& scheme : sim::allreduce_schemes()) rows.push_back({std::string(scheme.name), scheme.description()});
  return rows;
}

/// The models that can be trained here, then the lists of layers that can only be planned and simulated with.
Rows models() {
  Rows rows = rows_of(kernel::models());
  for (const EmbeddedText& list : embedded_layers()) {
    const Json content = Json::parse(list.text, /*comments=*/true);
    std::vector<int> sides;
    for (const Json& side : content.at("image").at("sizes")) sides.push_back(side.get<int>());
    rows.push_back({std::string(list.name), fmt::format("its layers, for plans and simulations, not to train here; "
                                                        "images of {} pixels a side",
                                                        fmt::join(sides, ", "))});
  }
  return rows;
}
Rows policy_rows() { return rows_of(policies::policies()); }
Rows scheduler_rows() { return rows_of(policies::schedulers()); }
Rows placement_rows() { return rows_of(policies::placements()); }

Rows modes() {
  return {
      {"all-reduce", "synchronous steps: gradients are summed over all workers before each update"},
      {"async-parameter-server", "each worker pushes gradients and fetches weights on its own; staleness is reported"},
      {"local-sgd", "local_steps steps each, then weights are averaged: federated where pools are regions"},
      {"gossip", "after each step a worker averages weights with one neighbour"}};
}

std::string counted(std::size_t number, const char* what) {
  return fmt::format("{} {}{}", number, what, number == 1 ? "" : "s");
}

/// "35 instances in 5 regions, prices of 2025-04-04 to 2026-07-20".
std::string summary_of(const platforms::Platform& platform) {
  std::set<std::string> regions;
  std::set<std::string> dates;
  for (const platforms::Instance& instance : platform.instances) {
    for (const platforms::Price& price : instance.prices) {
      regions.insert(price.region);
      if (price.as_of != "undated") dates.insert(price.as_of);
    }
  }
  std::string known = fmt::format("{} in {}", counted(platform.instances.size(), "instance type"),  //
                                  counted(regions.size(), "region"));
  if (dates.empty()) return known;
  if (dates.size() == 1) return fmt::format("{}, prices of {}", known, *dates.begin());
  return fmt::format("{}, prices of {} to {}", known, *dates.begin(), *dates.rbegin());
}

Rows providers() {
  Rows rows;
  for (const std::string& provider : platforms::provider_names())
    rows.push_back({provider, summary_of(platforms::catalog(provider))});
  return rows;
}

Rows markets() {
  const auto summary = [](platforms::Market market) -> const char* {
    switch (market) {
      case platforms::Market::on_demand:
        return "paid while it runs, never taken back";
      case platforms::Market::spot:
        return "cheaper, may be taken back at short notice";
      case platforms::Market::reserved_1y:
        return "committed for one year";
      case platforms::Market::reserved_3y:
        return "committed for three years";
    }
    return "";
  };
  Rows rows;
  for (const std::string& name : platforms::market_names())
    rows.push_back({name, summary(*platforms::parse_market(name))});
  return rows;
}

/// Calls `visit` with each catalog and each of its instances that can be had.
void for_each_instance(const std::function<void(const platforms::Platform&, const platforms::Instance&)>& visit) {
  for (const std::string& provider : platforms::provider_names())
    for (const platforms::Instance& instance : platforms::catalog(provider).instances)
      if (instance.retired.empty()) visit(platforms::catalog(provider), instance);
}

std::string with_commas(const std::set<std::string>& names) { return fmt::format("{}", fmt::join(names, ", ")); }

/// GPUs whose kernel times are known, with the providers that have them, then what else the catalogs have.
Rows gpus() {
  std::map<std::string, std::set<std::string>> providers_of;  // by the sheet's name, else by the catalog's
  std::map<std::string, std::string> others;
  for_each_instance([&](const platforms::Platform& platform, const platforms::Instance& instance) {
    const platforms::Gpu& gpu = platform.gpu_of(instance);
    const calibration::GpuSheet* sheet = calibration::find_gpu_sheet(gpu.name);
    const std::string& name = sheet == nullptr ? gpu.name : sheet->name;
    providers_of[name].insert(platform.name);
    if (sheet == nullptr)
      others[name] = fmt::format("{} fp32, {}", to_string(gpu.fp32), to_string(gpu.memory_bandwidth));
  });
  Rows rows;
  const auto add = [&](const std::string& name, std::string summary) {
    if (const auto found = providers_of.find(name); found != providers_of.end())
      summary += "; " + with_commas(found->second);
    rows.push_back({name, std::move(summary)});
  };
  for (const calibration::GpuSheet& gpu : calibration::gpu_sheets()) {
    std::string summary =
        fmt::format("{} multiprocessors, {} fp32, {}", gpu.multiprocessors, to_string(FlopsPerSecond{gpu.fp32_flops()}),
                    to_string(BytesPerSecond{gpu.memory_bandwidth}));
    if (gpu.tensor_fp16_flops > 0)
      summary += fmt::format(", {} on tensor cores", to_string(FlopsPerSecond{gpu.tensor_fp16_flops}));
    add(gpu.name, std::move(summary));
  }
  for (const auto& [name, summary] : others) add(name, summary + "; times of its kernels are not known");
  return rows;
}

/// "aws: 8 x A100-40GB, 96 vCPUs; on demand from 32.77 USD/h in 4 regions".
Rows instances() {
  Rows rows;
  for_each_instance([&](const platforms::Platform& platform, const platforms::Instance& instance) {
    std::string summary = fmt::format("{}: {} x {}", platform.name, instance.gpus, instance.gpu);
    if (instance.vcpus > 0) summary += fmt::format(", {} vCPUs", instance.vcpus);
    const platforms::Price* least = nullptr;
    std::set<std::string> regions;
    for (const platforms::Price& price : instance.prices) {
      regions.insert(price.region);
      if (price.market == platforms::Market::on_demand && (least == nullptr || price.per_hour < least->per_hour))
        least = &price;
    }
    if (regions.empty()) summary += "; no price is known";
    if (!regions.empty()) summary += "; " + counted(regions.size(), "region");
    if (least != nullptr) summary += ", on demand from " + to_string(least->per_hour);
    rows.push_back({instance.name, std::move(summary)});
  });
  return rows;
}

/// "aws: 21 instance types, 400 g/kWh".
Rows regions() {
  Rows rows;
  for (const std::string& provider : platforms::provider_names()) {
    const platforms::Platform& platform = platforms::catalog(provider);
    std::map<std::string, std::size_t> types;
    for (const platforms::Instance& instance : platform.instances) {
      std::set<std::string> priced;
      for (const platforms::Price& price : instance.prices) priced.insert(price.region);
      for (const std::string& region : priced) ++types[region];
    }
    for (const auto& [name, count] : types) {
      std::string summary = fmt::format("{}: {}", provider, counted(count, "instance type"));
      if (const platforms::Region* region = platform.region(name); region != nullptr && region->carbon)
        summary += ", " + to_string(*region->carbon);
      rows.push_back({name, std::move(summary)});
    }
  }
  return rows;
}

struct Topic {
  const char* name;
  Rows (*rows)();
};

constexpr Topic kTopics[] = {
    {"schemes", schemes},
    {"modes", modes},
    {"policies", policy_rows},
    {"schedulers", scheduler_rows},
    {"placements", placement_rows},
    {"models", models},
    {"providers", providers},
    {"markets", markets},
    {"gpus", gpus},
    {"instances", instances},
    {"regions", regions},
};

const Topic& find_topic(const std::string& name) {
  std::vector<std::string> names;
  for (const Topic& topic : kTopics) {
    if (name == topic.name) return topic;
    names.emplace_back(topic.name);
  }
  if (name.empty()) throw ConfigError("list: which? Write one of " + list_of(names));
  const auto close = nearest(name, names);
  throw ConfigError(fmt::format("list: found \"{}\", expected {}{}", name, list_of(names),
                                close ? fmt::format("; did you mean \"{}\"?", *close) : ""));
}

std::string as_table(const Rows& rows, std::size_t columns) {
  std::size_t width = 0;
  for (const Row& row : rows) width = std::max(width, row.name.size());
  std::string text;
  for (const Row& row : rows) text += report::hanging(fmt::format("{:<{}}  ", row.name, width), row.summary, columns);
  return text;
}

std::string as_json(const Rows& rows) {
  auto out = OrderedJson::array();
  for (const Row& row : rows) out.push_back({{"name", row.name}, {"summary", row.summary}});
  return out.dump(2) + "\n";
}

std::string as_csv(const Rows& rows) {
  report::Table table({"name", "summary"});
  for (const Row& row : rows) table.add({row.name, row.summary});
  return table.csv();
}

std::string formatted(const Rows& rows, const Shared& shared) {
  return shared.format == "json"  ? as_json(rows)
         : shared.format == "csv" ? as_csv(rows)
                                  : as_table(rows, result_width(shared));
}

}  // namespace

std::vector<std::string> listed_topics() {
  std::vector<std::string> names;
  for (const Topic& topic : kTopics) names.emplace_back(topic.name);
  return names;
}

std::vector<std::string> listed_names(std::string_view topic) {
  std::vector<std::string> names;
  for (const Row& row : find_topic(std::string(topic)).rows()) names.push_back(row.name);
  return names;
}

namespace {

void declare_list(Parser command, Shared& shared) {
  auto topic = std::make_shared<std::string>();
  command.add_option("topic", *topic, "what to list").check(suggest("@topics"));
  add_format(command, shared, {"table", "json", "csv"});
  add_output(command, shared);
  command.callback([topic, &shared] {
    const Rows rows = find_topic(*topic).rows();
    emit(shared, formatted(rows, shared));
  });
}

}  // namespace

Command list_command() {
  return {
      .name = "list",
      .summary = "the identifiers that work",
      .examples =
          "  ganymede list schemes\n"
          "  ganymede list instances\n"
          "  ganymede list providers --format json\n",
      .about =
          "Topics: schemes, modes, policies, schedulers, placements, models, providers, markets, regions, instances,\n"
          "gpus (with the providers that have them). `ganymede catalog` shows every price.",
      .declare = declare_list};
}

}  // namespace ganymede::cli
