#include "platforms/overlay.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/errors.hpp"
#include "common/file.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "common/text.hpp"
#include "platforms/catalog.hpp"

namespace ganymede::platforms {
namespace {

/// Throws ConfigError, with the nearest name, for an entry of the patch that the platform does not have.
void check_names(const JsonNode& patch, const Json& platform) {
  for (const auto& [section, entries] : patch.as_map()) {
    if (section != "gpus" && section != "instances" && section != "regions" && section != "storage") continue;
    std::vector<std::string> names;
    if (platform.contains(section))
      for (const auto& [name, entry] : platform.at(section).items()) names.push_back(name);
    for (const auto& [name, entry] : entries.as_map()) {
      if (std::find(names.begin(), names.end(), name) != names.end()) continue;
      entry.fail(fmt::format("the platform has no \"{}\" in \"{}\"{}", name, section, did_you_mean(name, names)));
    }
  }
}

/// Smallest and largest message of the measured rows; none in an overlay that states no rows.
std::optional<std::pair<double, double>> sizes_of(const Json& fit) {
  std::optional<std::pair<double, double>> sizes;
  if (!fit.is_object() || !fit.contains("rows") || !fit["rows"].is_array()) return sizes;
  for (const auto& row : fit["rows"]) {
    if (!row.is_object() || !row.contains("bytes") || !row["bytes"].is_number()) continue;
    const auto bytes = row["bytes"].get<double>();
    if (!sizes) sizes = {bytes, bytes};
    sizes = {std::min(sizes->first, bytes), std::max(sizes->second, bytes)};
  }
  return sizes;
}

}  // namespace

Platform load_overlaid(std::string_view catalog, const std::filesystem::path& relative_to, const JsonNode& overlay,
                       const JsonNode* at) {
  const std::string below =
      load_catalog(catalog, relative_to, at).file;  // reports mistakes of the catalog itself first
  JsonObject in(overlay);
  check_schema(in, "ganymede.overlay/1");
  in.optional("source");
  const auto fit = in.optional("fit");
  const JsonNode patch = in.required("platform");
  in.finish();

  const JsonNode base = is_provider(catalog) ? JsonNode::parse(catalog_text(catalog), below) : JsonNode::load(below);
  check_names(patch, base.value());
  Json content = base.value();
  content.merge_patch(patch.value());
  Platform platform =
      read_platform(JsonNode::wrap(std::move(content), below + " with " + overlay.file(), base.directory()));
  if (!fit) return platform;
  platform.measured_sizes = sizes_of(fit->value());
  if (auto curve = read_measured_collective(fit->value()); !curve.sizes.empty()) platform.measured = std::move(curve);
  return platform;
}

PlatformChoice read_platform_choice(JsonObject& in) {
  PlatformChoice choice;
  const JsonNode catalog = in.required("catalog");
  if (catalog.is_object()) {  // the platform in full
    choice.platform = read_platform(catalog);
    choice.catalog = choice.platform.name;
    choice.inline_platform = true;
    return choice;
  }
  choice.catalog = catalog.as_string();
  choice.folder = catalog.directory();
  const auto overlay = in.optional("overlay");
  if (!overlay) {
    choice.platform = load_catalog(choice.catalog, choice.folder, &catalog);
    return choice;
  }
  choice.overlay = overlay->directory() / overlay->as_string();
  try {
    choice.overlay_text = read_file(choice.overlay);
  } catch (const ConfigError& error) {
    overlay->fail(fmt::format("{}; `ganymede import nccl-tests LOG` writes one", error.what()));
  }
  const JsonNode patch = JsonNode::parse(choice.overlay_text, choice.overlay.string());
  choice.platform = load_overlaid(choice.catalog, choice.folder, patch, &catalog);
  return choice;
}

Platform load_platform_choice(const std::string& catalog, const std::string& overlay) {
  return overlay.empty() ? load_catalog(catalog, ".") : load_overlaid(catalog, ".", JsonNode::load(overlay));
}

}  // namespace ganymede::platforms
