#pragma once
// The jobs of a server as metrics for Prometheus.

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace ganymede::serve {

/// Metrics of jobs as Jobs::list() describes them: how many there are in each state, and how far each running one is.
std::string job_metrics(const nlohmann::ordered_json& jobs);

}  // namespace ganymede::serve
