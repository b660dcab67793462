#include "cli/simulate_cluster.hpp"

#include "cli/progress.hpp"
#include "cli/terminal.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "common/process.hpp"
#include "report/clusters.hpp"
#include "sim/cluster/cluster_simulation.hpp"

namespace ganymede::cli {

void simulate_cluster_file(const std::string& file, const std::vector<JsonOverride>& changes, Shared& shared) {
  const sim::Cluster cluster = sim::read_cluster(JsonNode::load(file, changes));
  auto waiting = show_elapsed(shared, "simulating");
  const std::string json = run_child([&] { return sim::cluster_result_json(cluster, sim::simulate_cluster(cluster)); });
  waiting.reset();
  const documents::ClusterResult result = documents::read_cluster_result(JsonNode::parse(json, "result"));
  if (result.summary.missed_deadlines > 0) shared.exit_code = ExitCode::goal_missed;
  if (shared.format == "json") return emit(shared, json);
  emit(shared, shared.format == "csv" ? report::cluster_csv(result)
                                      : highlighted(shared, report::cluster_text(result, result_width(shared))));
}

}  // namespace ganymede::cli
