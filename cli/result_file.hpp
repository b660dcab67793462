#pragma once
// Results read back, for whatever shows or exports them.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace ganymede::cli {

/// A file that simulate, sweep, plan or validate wrote with --format json, of one of these schemas
/// ("ganymede.result/1"). ConfigError: no such file, no JSON, another schema (a newer version is said to be one), or
/// members missing that everything needs.
nlohmann::json load_result(const std::string& file, const std::vector<std::string>& schemas);

}  // namespace ganymede::cli
