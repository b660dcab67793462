#pragma once
// Kubernetes manifests of a service, ganymede.service/1.

#include <string>

#include "exports/launch.hpp"

namespace ganymede::exports {

/// YAML documents separated by "---". Throws ConfigError for what read_service() refuses and for a name that is no
/// label.
std::string kubernetes_service(const report::Document& document, const ExportValues& values);

}  // namespace ganymede::exports
