#pragma once
// The report: one HTML page that holds everything it shows, opens without a network, and reads without a script.

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace ganymede {

/// Of a `ganymede.result/1`, `ganymede.sweep/1`, `ganymede.plan/1` or `ganymede.validation-result/1`. Its content
/// security policy lets nothing run but its own scripts, which it names by their SHA-256, and lets nothing be fetched;
/// whatever text the document holds stays text. `ganymede::kMostCandidates` at most are shown, and it says so.
/// nlohmann::json::exception if `document` lacks what its schema demands.
std::string report_page(const nlohmann::json& document);

}  // namespace ganymede
