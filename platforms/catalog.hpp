#pragma once
// The catalogs that come with the program: platforms/catalog/*.json, embedded when it is built.

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "platforms/platform.hpp"

namespace ganymede {

/// "aws", "azure", ...: one for each file of platforms/catalog, sorted.
const std::vector<std::string>& provider_names();

/// Whether it is one of provider_names().
bool is_provider(std::string_view name);

/// Precondition: is_provider(provider). Parsed once, on first use.
const Platform& catalog(std::string_view provider);

/// What a "catalog" names: one of provider_names(), or a platform file, whose path starts at `relative_to` (where the
/// naming file lies; "." for a name from the command line). A word without '/' and ".json" that names no provider:
/// ConfigError with the list and the nearest, placed at `at` if given.
Platform load_catalog(std::string_view name_or_path, const std::filesystem::path& relative_to,
                      const JsonNode* at = nullptr);

/// The text of an embedded catalog, for `example` and tests.
std::string_view catalog_text(std::string_view provider);

}  // namespace ganymede
