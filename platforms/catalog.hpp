#pragma once
// The catalogs that come with the program: platforms/catalog/*.json, embedded in it by the build.

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "platforms/platform.hpp"

namespace ganymede::platforms {

/// Names of the catalogs, sorted: "aws", "azure", … for each file of platforms/catalog.
const std::vector<std::string>& provider_names();

/// True for one of provider_names().
bool is_provider(std::string_view name);

/// The catalog of a provider, parsed on first use. Precondition: is_provider(provider).
const Platform& catalog(std::string_view provider);

/// Loads what a "catalog" names: one of provider_names(), or a platform file, whose path is relative to `relative_to`
/// (the folder of the file that names it; "." for a name from the command line). Throws ConfigError, located at `at` if
/// given, for a word without '/' and ".json" that is not a provider's name; the message lists the names and the nearest
/// one.
Platform load_catalog(std::string_view name_or_path, const std::filesystem::path& relative_to,
                      const JsonNode* at = nullptr);

/// The text of an embedded catalog. Precondition: is_provider(provider).
std::string_view catalog_text(std::string_view provider);

/// A GPU of what load_catalog() loads for a name from the command line. Throws ConfigError, which names --gpu, with the
/// nearest name if the catalog has no such GPU.
Gpu catalog_gpu(const std::string& catalog, const std::string& gpu);

}  // namespace ganymede::platforms
