// ganymede list: the identifiers that work, each from the table of the code that implements it.

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "calibration/kernel_tables.hpp"
#include "cli/command.hpp"
#include "cli/progress.hpp"
#include "cli/shared_options.hpp"
#include "common/embedded.hpp"
#include "common/errors.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "common/text.hpp"
#include "documents/schemas.hpp"
#include "kernel/models/models.hpp"
#include "platforms/catalog_lists.hpp"
#include "policies/policy.hpp"
#include "policies/schedulers/placement.hpp"
#include "policies/schedulers/scheduler.hpp"
#include "report/table.hpp"
#include "sim/collectives/allreduce.hpp"
#include "traces/recipe.hpp"

namespace ganymede::cli {
namespace {

using Rows = std::vector<platforms::ListedName>;

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
Rows recipes() {
  Rows rows;
  for (const std::string& name : traces::recipe_names()) {
    const traces::Recipe recipe = traces::resolve_recipe(name);
    std::vector<std::string> configs;
    for (const auto& config : recipe.document.configs)
      if (std::find(configs.begin(), configs.end(), config.name) == configs.end()) configs.push_back(config.name);
    std::string summary = recipe.document.about;
    if (!recipe.sizes.empty()) summary += fmt::format("; images of {} pixels", fmt::join(recipe.sizes, ", "));
    if (!configs.empty()) summary += fmt::format("; configurations: {}", fmt::join(configs, ", "));
    for (const auto& measured : recipe.document.measured)
      summary += fmt::format("; {} steps measured on {} ({})", measured.rows.size(), measured.gpu, measured.by);
    rows.push_back({name, summary});
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
    {"recipes", recipes},
    {"providers", platforms::list_providers},
    {"markets", platforms::list_markets},
    {"gpus", calibration::list_gpus},
    {"instances", platforms::list_instances},
    {"regions", platforms::list_regions},
};

const Topic& find_topic(const std::string& name) {
  if (const Topic* topic = find_named(kTopics, name)) return *topic;
  const std::vector<std::string> names = ganymede::names_of(kTopics);
  if (name.empty()) throw ConfigError("list: which? Write one of " + list_of(names));
  throw ConfigError(fmt::format("list: found \"{}\", expected {}{}", name, list_of(names), did_you_mean(name, names)));
}

std::string as_table(const Rows& rows, std::size_t columns) {
  std::size_t width = 0;
  for (const auto& row : rows) width = std::max(width, row.name.size());
  std::string text;
  for (const auto& row : rows) text += report::hanging(fmt::format("{:<{}}  ", row.name, width), row.summary, columns);
  return text;
}

std::string as_json(const Rows& rows) {
  auto out = OrderedJson::array();
  for (const auto& row : rows) out.push_back({{"name", row.name}, {"summary", row.summary}});
  return out.dump(2) + "\n";
}

std::string as_csv(const Rows& rows) {
  report::Table table({"name", "summary"});
  for (const auto& row : rows) table.add({row.name, row.summary});
  return table.csv();
}

std::string formatted(const Rows& rows, const Shared& shared) {
  return shared.format == "json"  ? as_json(rows)
         : shared.format == "csv" ? as_csv(rows)
                                  : as_table(rows, result_width(shared));
}

}  // namespace

std::vector<std::string> listed_topics() { return ganymede::names_of(kTopics); }

std::vector<std::string> listed_names(std::string_view topic) {
  return ganymede::names_of(find_topic(std::string(topic)).rows());
}

namespace {

void declare_list(Parser command, Shared& shared) {
  auto topic = std::make_shared<std::string>();
  command.add_option("topic", *topic, "what to list", suggest("@topics"));
  add_result(command, shared, {"table", "json", "csv"});
  command.callback([topic, &shared] {
    const Rows rows = find_topic(*topic).rows();
    emit(shared, formatted(rows, shared));
  });
}

}  // namespace

Command list_command() {
  return {.name = "list",
          .summary = "the identifiers that work",
          .examples =
              "  ganymede list schemes\n"
              "  ganymede list instances\n"
              "  ganymede list providers --format json\n",
          .about =
              "Topics: schemes, modes, policies, schedulers, placements, models, recipes, providers, markets, regions, "
              "instances,\n"
              "gpus (with the providers that have them). `ganymede catalog` shows every price.",
          .declare = declare_list};
}

namespace {

/// The example of that kind; a policy's is the program that the studies run (studies/policies/external.py).
std::string_view example_of(const std::string& kind) {
  for (const EmbeddedText& example : embedded_examples())
    if (example.name == (kind == "policy" ? "external" : kind)) return example.text;
  return {};
}

void declare_example(Parser command, Shared& shared) {
  auto what = std::make_shared<std::string>(), like = std::make_shared<std::string>();
  command
      .add_option("what", *what,
                  "scenario, study, request, platform, layers, recipe, cluster, service or policy (a program for the "
                  "policy external)")
      .required()
      .check(one_of({"scenario", "study", "request", "platform", "layers", "recipe", "cluster", "service", "policy"}));
  command
      .add_option("--like", *like,
                  "platform: machines of your own that are built like this instance type of the catalogs",
                  suggest("@instances"))
      .check(not_empty);
  add_output(command, shared);
  command.callback([what, like, &shared] {
    if (!like->empty()) {
      if (*what != "platform") throw ConfigError(fmt::format("--like is for platforms, not for an example {}", *what));
      return emit(shared, platforms::machines_like(*like));
    }
    emit(shared, std::string(example_of(*what)));
  });
}

}  // namespace

Command example_command() {
  return {
      .name = "example",
      .summary = "print a commented, valid file to start from",
      .examples =
          "  ganymede example scenario > scenario.json && ganymede simulate scenario.json\n"
          "  ganymede example study -o study.json\n"
          "  ganymede example platform -o lab.json\n"
          "  ganymede example platform --like p4d.24xlarge > own.json && ganymede compare-own own.json request.json\n"
          "  ganymede example layers -o model.json && ganymede import layers model.json --batch 64 -o trace.json\n"
          "  ganymede example recipe -o mine.json && ganymede plan --recipe mine.json --deadline 60h\n"
          "  ganymede example cluster -o cluster.json && ganymede simulate cluster.json\n"
          "  ganymede example service -o service.json && ganymede simulate service.json\n"
          "  ganymede example policy -o policy.py\n",
      .about = "Print a commented, valid file to start from.",
      .declare = declare_example};
}

// ganymede schema: the JSON Schemas of our file formats, for editors and other programs.

namespace {

void declare_schema(Parser command, Shared& shared) {
  std::vector<std::string> names = ganymede::names_of(embedded_schemas());
  for (const documents::DescribedDocument& document : documents::described_documents())
    names.emplace_back(document.name);
  std::sort(names.begin(), names.end());  // files are sorted with their extensions
  auto what = std::make_shared<std::string>();
  command.add_option("format", *what, fmt::format("{}", fmt::join(names, ", "))).required().check(one_of(names));
  add_output(command, shared);
  command.callback([what, &shared] {
    for (const EmbeddedText& schema : embedded_schemas())
      if (schema.name == *what)
        emit(shared, documents::bundled_schema(schema.text, embedded_schema_definitions(), listed_names));
    for (const documents::DescribedDocument& document : documents::described_documents())
      if (document.name == *what) emit(shared, document.schema().dump(1) + "\n");
  });
}

}  // namespace

Command schema_command() {
  return {.name = "schema",
          .summary = "the JSON Schema of a file format",
          .examples =
              "  ganymede schema scenario > scenario.schema.json        name it in an editor's \"$schema\" setting\n"
              "  ganymede schema result\n",
          .about =
              "The JSON Schema (draft 7) of a file format. It says what may stand where; what the program checks "
              "besides, such as\n"
              "units, names and what contradicts itself, is in its error messages. The program also takes // comments.",
          .declare = declare_schema};
}

}  // namespace ganymede::cli
