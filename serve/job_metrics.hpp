#pragma once
// The jobs of a server as metrics for Prometheus.

#include <string>

#include "common/json_fwd.hpp"

namespace ganymede::serve {

/// Metrics of jobs as Jobs::list() describes them: how many there are in each state, and how far each running one is.
std::string job_metrics(const OrderedJson& jobs);

}  // namespace ganymede::serve
