#include <nlohmann/json.hpp>

#include "exports/exporter.hpp"
#include "report/plans.hpp"
#include "report/runs.hpp"

namespace ganymede {
namespace {

std::string write_csv(const Document& document, const ExportValues& /*values*/, const ExportConsole& /*console*/) {
  if (document.kind == DocumentKind::plan) return plan_csv(document.json());
  if (document.kind == DocumentKind::sweep) return sweep_csv(document.json());
  return run_csv(document.json());
}

}  // namespace

Exporter csv_exporter() {
  return {.name = "csv",
          .summary = "a row for each run, or for each candidate of a plan",
          .examples =
              "  ganymede export csv result.json\n"
              "  ganymede export csv sweep.json -o runs.csv\n",
          .about = "",
          .reads = {DocumentKind::result, DocumentKind::sweep, DocumentKind::plan},
          .write = write_csv};
}

}  // namespace ganymede
