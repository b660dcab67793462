#include "studies/machine.hpp"

#include <vector>

#include "common/json.hpp"
#include "common/json_value.hpp"
#include "platforms/catalog.hpp"

namespace ganymede::studies {
namespace {

/// What a study writes itself is as sure as it says.
void set_labels(platforms::Platform& platform, const std::string& label) {
  platform.fabric.label = label;
  for (platforms::Instance& instance : platform.instances) {
    if (instance.nic) instance.nic->label = label;
    if (instance.gpu_links) instance.gpu_links->label = label;
    if (instance.host_link) instance.host_link->label = label;
  }
}

platforms::Platform in_burst(platforms::Platform platform) {
  for (platforms::Instance& instance : platform.instances)
    if (instance.nic && instance.nic->burst) instance.nic->bandwidth = *instance.nic->burst;
  return platform;
}

}  // namespace

LinkEvidence Machine::links(int nodes) const {
  return stated ? *stated
                : calibration::link_evidence(
                      as_shipped->fabric_label(as_shipped->instance(instance), nodes, gpus_per_node));
}

JsonNode find_named(const JsonNode& root, const char* section, const JsonNode& name) {
  const std::string key = name.as_string();
  std::vector<std::string> known;
  if (root.value().contains(section))
    for (const auto& [other, value] : root.child(section).as_map()) {
      if (other == key) return value;
      known.push_back(other);
    }
  return name.as_choice(known), root;  // throws
}

Machine read_machine(const JsonNode& node) {
  Machine out;
  JsonObject machine(node);
  const JsonNode from = machine.one_of("catalog", "platform");
  const bool own = from.is_object();
  platforms::Platform platform =
      own ? platforms::read_platform(from) : platforms::load_catalog(from.as_string(), from.directory(), &from);
  const auto network = machine.optional("network");
  const bool sustained = network && network->as_choice({"burst", "sustained"}) == "sustained";
  if (own) out.stated = LinkEvidence::assumed;
  if (auto evidence = machine.optional("evidence")) {
    const std::string word = evidence->as_choice({"measured", "fitted", "datasheet", "assumed"});
    out.stated = word == "fitted" ? LinkEvidence::fitted : calibration::link_evidence(word);
  }
  if (own && *out.stated >= LinkEvidence::datasheet)
    set_labels(platform, *out.stated == LinkEvidence::assumed ? "assumed" : "datasheet");
  out.as_shipped = std::make_shared<const platforms::Platform>(std::move(platform));
  out.platform = sustained ? out.as_shipped : std::make_shared<const platforms::Platform>(in_burst(*out.as_shipped));
  const JsonNode type = machine.required("instance");
  out.instance = type.as_string();
  out.gpus_per_node = out.platform->instance(out.instance, &type).gpus;
  if (auto per_node = machine.optional("gpus_per_node"))
    out.gpus_per_node = static_cast<int>(per_node->as_integer(1, out.gpus_per_node));
  machine.finish();
  return out;
}

}  // namespace ganymede::studies
