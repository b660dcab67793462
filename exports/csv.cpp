#include "common/json_value.hpp"
#include "exports/exporter.hpp"
#include "report/clusters.hpp"
#include "report/plans.hpp"
#include "report/runs.hpp"

namespace ganymede::exports {
namespace {

std::string write_csv(const report::Document& document, const ExportValues& /*values*/,
                      const ExportConsole& /*console*/) {
  if (document.kind == report::DocumentKind::plan) return report::plan_csv(document.json());
  if (document.kind == report::DocumentKind::cluster)
    return report::cluster_csv(documents::read_cluster_result(document.node));
  if (document.kind == report::DocumentKind::sweep) return report::sweep_csv(document.json());
  return report::run_csv(document.json());
}

}  // namespace

Exporter csv_exporter() {
  return {.name = "csv",
          .summary = "a row for each run, for each candidate of a plan, or for each job of a cluster",
          .examples =
              "  ganymede export csv result.json\n"
              "  ganymede export csv sweep.json -o runs.csv\n",
          .about = "",
          .reads = {report::DocumentKind::result, report::DocumentKind::sweep, report::DocumentKind::plan,
                    report::DocumentKind::cluster},
          .write = write_csv};
}

}  // namespace ganymede::exports
