#pragma once
// The outcome of a service, as tables.

#include <string>

#include "documents/service_result.hpp"
#include "report/table.hpp"

namespace ganymede::report {

std::string service_text(const documents::ServiceResult& result, std::size_t width = kAnyWidth);
/// One row.
std::string service_csv(const documents::ServiceResult& result);

std::string service_plan_text(const documents::ServicePlan& plan, std::size_t width = kAnyWidth);
std::string service_plan_csv(const documents::ServicePlan& plan);

}  // namespace ganymede::report
