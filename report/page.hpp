#pragma once
// The report: one HTML page that holds everything it shows, opens without a network, and reads without a script.

#include <map>
#include <string>

#include "common/json_fwd.hpp"

namespace ganymede::report {

/// Returns the page of a `ganymede.result/1`, `ganymede.sweep/1`, `ganymede.plan/1`, `ganymede.validation-result/1` or
/// `ganymede.cluster-result/1`.
/// Its content security policy allows only the page's own scripts, by their SHA-256, and no request to any server; text
/// of the document is always shown as text. At most kMaxCandidates are shown, and the page says if there are more.
/// Throws JsonError if `document` lacks members that its schema demands.
/// `words` says in a few words what schemes and policies are, by their names; those that the page has are explained.
std::string report_page(const Json& document, const std::map<std::string, std::string>& words = {});

}  // namespace ganymede::report
