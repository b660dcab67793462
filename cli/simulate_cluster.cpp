#include "cli/simulate_cluster.hpp"

#include <nlohmann/json.hpp>

#include "cli/progress.hpp"
#include "cli/terminal.hpp"
#include "common/process.hpp"
#include "report/clusters.hpp"
#include "sim/cluster/cluster_simulation.hpp"

namespace ganymede::cli {

void simulate_cluster_file(const std::string& file, const std::vector<JsonOverride>& changes, Shared& shared) {
  const sim::Cluster cluster = sim::read_cluster(JsonNode::load(file, changes));
  auto waiting = show_elapsed(shared, "simulating");
  const std::string json = run_child([&] { return sim::cluster_result_json(cluster, sim::simulate_cluster(cluster)); });
  waiting.reset();
  if (shared.format == "json") return emit(shared, json);
  const auto result = nlohmann::json::parse(json);
  emit(shared,
       shared.format == "csv" ? report::cluster_csv(result) : report::cluster_text(result, result_width(shared)));
}

}  // namespace ganymede::cli
