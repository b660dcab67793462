#pragma once
// What a service comes to, from its life.

#include "documents/service_result.hpp"
#include "sim/service/service.hpp"

namespace ganymede::sim {

/// Simulates the service with its expected times, and with those at the ends of their interval.
documents::ServiceResult serve(const Service& service);

}  // namespace ganymede::sim
