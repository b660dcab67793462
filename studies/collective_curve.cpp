#include "studies/collective_curve.hpp"

#include <fmt/format.h>

#include "calibration/interval_classes.hpp"
#include "common/json.hpp"
#include "common/random.hpp"
#include "sim/engine/collective_benchmark.hpp"
#include "sim/engine/fabric_graph.hpp"

namespace ganymede::studies {

CollectiveCurve::CollectiveCurve(const JsonNode& node, const JsonNode& root) {
  JsonObject in(node);
  name_ = in.required("name").as_string();
  machine_ = read_machine(find_named(root, "machines", in.required("machine")));
  gpus_per_node_ = machine_.gpus_per_node;
  if (auto nodes = in.optional("nodes")) nodes_ = static_cast<int>(nodes->as_integer(1, 1 << 16));
  if (auto per_node = in.optional("gpus_per_node"))
    gpus_per_node_ = static_cast<int>(per_node->as_integer(1, machine_.gpus_per_node));
  if (gpus() < 2) node.fail("expected at least two GPUs");
  scheme_ = sim::read_scheme(in.required("scheme"));
  if (auto collective = in.optional("collective"))
    collective_ = sim::parse_collective(collective->as_choice(sim::collective_names()));
  const JsonNode sizes = in.required("bytes"), times = in.required("measured_us");
  const auto bytes = sizes.as_numbers(1, 1e12), measured = times.as_numbers(1e-3, 1e12);
  if (bytes.empty()) sizes.expected("at least one size");
  if (bytes.size() != measured.size())
    times.fail(fmt::format("found {} times for {} sizes", measured.size(), bytes.size()));
  for (std::size_t i = 0; i < bytes.size(); ++i) cells_.push_back({static_cast<std::int64_t>(bytes[i]), measured[i]});
  in.finish();
}

std::string CollectiveCurve::evidence() const {
  return fmt::format("collective, {}, {}", to_string(machine_.links(nodes_)),
                     nodes_ > 1 ? "several machines" : "one machine");
}

double CollectiveCurve::interval() const {
  return portable_exp(link_factor_ * calibration::half_width_of_collective(machine_.links(nodes_), nodes_ > 1));
}

std::vector<double> CollectiveCurve::predict() const {
  const sim::FabricGraph fabric(*machine_.platform,
                                {{&machine_.platform->instance(machine_.instance), nodes_, gpus_per_node_}});
  std::vector<double> out;
  for (const CurveCell& cell : cells_) {
    const sim::CollectiveBenchmark benchmark(fabric, {scheme_, cell.bytes, collective_});
    out.push_back(benchmark.run(sim::CollectiveFidelity::folded).time.si * 1e6);
  }
  return out;
}

}  // namespace ganymede::studies
