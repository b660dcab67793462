// "storage", "checkpoint", "faults" and "policy" of a scenario: what happens besides its steps.

#include <algorithm>

#include "common/file.hpp"
#include "policies/q_learning.hpp"
#include "sim/run/scenario_parts.hpp"

namespace ganymede {
namespace {

// Weights and Adam's two moments.
constexpr double kStateOfAWeight = 3;

Slowdown read_slowdown(const JsonNode& node, bool share) {
  JsonObject in(node);
  Slowdown slowdown;
  slowdown.every = in.required("every").as_positive<Seconds>();
  slowdown.factor = share ? in.required("factor").as_number(1e-6, 1) : in.required("factor").as_number(1, 1e6);
  slowdown.lasts = in.required("for").as_positive<Seconds>();
  in.finish();
  return slowdown;
}

InjectedEvent read_event(const JsonNode& node, const Scenario& scenario) {
  using Kind = InjectedEvent::Kind;
  JsonObject in(node);
  InjectedEvent event;
  event.at = in.required("at").as_quantity<Seconds>();
  const std::string kind = in.required("kind").as_choice({"interruption", "crash", "straggler", "network", "storage"});
  event.kind = kind == "interruption" ? Kind::interruption
               : kind == "crash"      ? Kind::crash
               : kind == "straggler"  ? Kind::straggler
               : kind == "network"    ? Kind::network
                                      : Kind::storage;
  if (auto pool = in.optional("pool")) event.pool = find_pool(*pool, scenario);
  if (auto nodes = in.optional("nodes")) event.nodes = static_cast<int>(nodes->as_integer(1, 65536));
  const bool slows = event.kind != Kind::interruption && event.kind != Kind::crash;
  if (slows) {
    const JsonNode factor = in.required("factor");
    event.factor = event.kind == Kind::straggler ? factor.as_number(1, 1e6) : factor.as_number(1e-6, 1);
    event.lasts = in.required("for").as_positive<Seconds>();
  }
  in.finish();
  return event;
}

std::shared_ptr<const PolicyTable> read_table(const JsonNode& at, Fingerprint& fingerprint) {
  const std::filesystem::path file = at.directory() / at.as_string();
  const std::string text = read_file(file);
  fingerprint.replace(at.pointer(), text);
  JsonObject in(JsonNode::parse(text, file.string()));
  check_schema(in, "ganymede.q-table/1");
  for (const char* about : {"episodes", "scenario", "seeds"}) in.optional(about);
  auto table = std::make_shared<PolicyTable>();
  for (const auto& [state, row] : in.required("values").as_map()) {
    const auto values = row.as_numbers(-1e300, 1e300);
    if (values.size() != kQActions) row.expected("three numbers: of halving, keeping and doubling the nodes");
    (*table)[state] = values;
  }
  in.finish();
  return table;
}

void read_command(JsonObject& in, PolicyChoice& choice) {
  const auto given = in.optional("command");
  if (!given)
    in.node().fail("the key \"command\" is missing: a program and its arguments; `ganymede example policy` prints one");
  const JsonNode& command = *given;
  if (command.is_string()) {
    choice.command = shell_command(command.as_string(), command.directory());
  } else {
    for (const auto& word : command.as_array()) choice.command.push_back(word.as_string());
    if (choice.command.empty()) command.expected("a program and its arguments, such as [\"python3\", \"policy.py\"]");
    // A path that lies beside the scenario; else a word for the search path.
    for (auto& word : choice.command) {
      const std::filesystem::path beside = command.directory() / word;
      if (std::filesystem::path(word).is_relative() && std::filesystem::is_regular_file(beside)) word = beside.string();
    }
  }
  if (auto limit = in.optional("limit")) choice.limit = limit->as_positive<Seconds>();
}

}  // namespace

std::vector<std::string> shell_command(const std::string& line, const std::filesystem::path& folder) {
  const std::string start = folder.empty() ? "." : folder.string();
  return {"/bin/sh", "-c", "cd \"$0\" && exec " + line, start};
}

void read_storage(const JsonNode& node, Scenario& scenario) {
  JsonObject in(node);
  InputPath& input = scenario.input;
  Checkpoints& checkpoints = scenario.checkpoints;
  if (auto share = in.optional("compressed")) input.compressed = share->as_number(1e-3, 1);
  if (auto name = in.optional("dataset")) {
    const Kept dataset{
        Bytes{static_cast<double>(scenario.dataset.images) * scenario.dataset.bytes_per_image * input.compressed}, true,
        "the dataset's \"bytes_per_image\" is not stated"};
    input.storage = read_volume(*name, scenario.pools.front(), dataset, input.volume);
    if (scenario.dataset.bytes_per_image <= 0)
      scenario.warnings.emplace_back(
          "the dataset's \"bytes_per_image\" is not stated: reading it from storage takes no time");
  }
  if (auto name = in.optional("checkpoint")) {
    const Kept state{checkpoints.bytes, checkpoints.every != Checkpoints::Every::never, "a checkpoint has no bytes"};
    checkpoints.storage = read_volume(*name, scenario.pools.front(), state, checkpoints.volume);
  }
  if (auto cache = in.optional("cache")) {
    const std::string kind = cache->as_choice({"memory", "disk", "none"});
    input.cache = kind == "memory" ? InputPath::Cache::memory
                  : kind == "disk" ? InputPath::Cache::disk
                                   : InputPath::Cache::none;
  }
  if (auto depth = in.optional("prefetch")) input.prefetch = static_cast<int>(depth->as_integer(1, 1024));
  if (auto time = in.optional("decompress")) input.decompress = time->as_quantity<Seconds>();
  if (auto images = in.optional("images_per_request")) input.images_per_request = images->as_number(1, 1e9);
  in.finish();
}

void read_checkpoint(const JsonNode& node, Scenario& scenario) {
  JsonObject in(node);
  Checkpoints& checkpoints = scenario.checkpoints;
  const JsonNode every = in.required("every");
  const std::string text = every.as_string();
  const bool epochs =
      text.ends_with("epoch") && text.find_first_not_of("0123456789") == text.size() - 5 && text.size() > 5;
  if (text == "daly") {
    checkpoints.every = Checkpoints::Every::daly;
  } else if (epochs) {
    checkpoints.every = Checkpoints::Every::epochs;
    checkpoints.epochs = text.size() > 14 ? 0 : std::stoll(text);
    if (checkpoints.epochs < 1) every.expected("a number of epochs from 1, such as \"1epoch\"");
    if (scenario.dataset.images == 0) every.fail("epochs need \"dataset\" in \"workload\", to know how long one is");
  } else {
    checkpoints.every = Checkpoints::Every::interval;
    checkpoints.interval = every.as_positive<Seconds>();
  }
  double weights = 0;
  for (const auto& [name, network] : scenario.trace.networks) weights += static_cast<double>(network.gradient_bytes);
  checkpoints.bytes = Bytes{kStateOfAWeight * weights};
  if (auto bytes = in.optional("bytes")) checkpoints.bytes = bytes->as_quantity<Bytes>();
  if (auto notice = in.optional("on_notice")) checkpoints.on_notice = notice->as_bool();
  in.finish();
}

void read_checkpoints_and_storage(JsonObject& in, Scenario& scenario) {
  // How large a volume for checkpoints is depends on how large they are.
  const auto checkpoint = in.optional("checkpoint");
  if (checkpoint) read_checkpoint(*checkpoint, scenario);
  if (auto storage = in.optional("storage")) read_storage(*storage, scenario);
  if (checkpoint && !scenario.checkpoints.storage) {
    scenario.checkpoints.every = Checkpoints::Every::never;
    scenario.warnings.emplace_back(
        "no checkpoints are written: \"storage\" names no place for them (\"storage\": {\"checkpoint\": ...})");
  }
}

void read_faults(const JsonNode& node, Scenario& scenario, Fingerprint&) {
  JsonObject in(node);
  Faults& faults = scenario.faults;
  if (auto crash = in.optional("crash")) {
    JsonObject of(*crash);
    faults.crash = of.required("every").as_positive<Seconds>();
    of.finish();
  }
  if (auto slow = in.optional("straggler")) faults.straggler = read_slowdown(*slow, false);
  if (auto slow = in.optional("network")) faults.network = read_slowdown(*slow, true);
  if (auto slow = in.optional("storage")) faults.storage = read_slowdown(*slow, true);
  if (auto events = in.optional("events"))
    for (const auto& event : events->as_array()) faults.events.push_back(read_event(event, scenario));
  in.finish();
}

void read_policy(const JsonNode& node, Scenario& scenario, Fingerprint& fingerprint) {
  JsonObject in(node);
  PolicyChoice& choice = scenario.policy;
  choice.policy = find_policy(in.required("name").as_choice(policy_names()));
  for (const PolicySetting& setting : choice.policy->settings) {
    auto value = in.optional(setting.name);
    choice.settings.push_back(value ? value->as_number(setting.low, setting.high) : setting.default_value);
  }
  if (auto every = in.optional("every")) choice.every = every->as_positive<Seconds>();
  if (auto blind = in.optional("blind")) choice.blind = blind->as_bool();
  if (choice.policy->learns) {
    const auto table = in.optional("table");
    if (!table) node.fail("the key \"table\" is missing: a file that `ganymede learn` has written");
    choice.table = read_table(*table, fingerprint);
  }
  if (!choice.policy->decide) read_command(in, choice);
  in.finish();
}

}  // namespace ganymede
