#include "cli/simulate_service.hpp"

#include "cli/progress.hpp"
#include "cli/terminal.hpp"
#include "common/json.hpp"
#include "report/services.hpp"
#include "sim/service/service_result.hpp"

namespace ganymede::cli {

void simulate_service_file(const std::string& file, const std::vector<JsonOverride>& changes, Shared& shared) {
  const sim::Service service = sim::read_service(JsonNode::load(file, changes));
  auto waiting = show_elapsed(shared, "simulating");
  const documents::ServiceResult result = sim::serve(service);
  waiting.reset();
  if (!result.goals.met) shared.exit_code = ExitCode::goal_missed;
  emit(shared, shared.format == "json"  ? documents::service_result_text(result)
               : shared.format == "csv" ? report::service_csv(result)
                                        : highlighted(shared, report::service_text(result, result_width(shared))));
}

}  // namespace ganymede::cli
