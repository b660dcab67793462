#include "platforms/catalog.hpp"

#include <fmt/format.h>

#include <cassert>
#include <map>

#include "common/embedded.hpp"
#include "common/errors.hpp"
#include "common/json.hpp"
#include "common/text.hpp"

namespace ganymede::platforms {
namespace {

const EmbeddedText* find_embedded(std::string_view provider) { return find_named(embedded_catalogs(), provider); }

/// True for "lab.json" and "clusters/lab"; false for names, such as "aws" or a misspelt "asw".
bool looks_like_path(std::string_view text) {
  return text.find('/') != std::string_view::npos || text.ends_with(".json");
}

[[noreturn]] void fail_unknown(std::string_view name, const JsonNode* at) {
  const std::string message =
      fmt::format("there is no catalog \"{}\"{}; expected {} or the path of a platform file (.json)", name,
                  did_you_mean(name, provider_names()), list_of(provider_names()));
  if (at != nullptr) at->fail(message);
  throw ConfigError(message);
}

}  // namespace

const std::vector<std::string>& provider_names() {
  static const std::vector<std::string> names = names_of(embedded_catalogs());
  return names;
}

bool is_provider(std::string_view name) { return find_embedded(name) != nullptr; }

std::string_view catalog_text(std::string_view provider) {
  const EmbeddedText* item = find_embedded(provider);
  assert(item != nullptr);
  return item->text;
}

const Platform& catalog(std::string_view provider) {
  static std::map<std::string, Platform, std::less<>> parsed;
  const auto known = parsed.find(provider);
  if (known != parsed.end()) return known->second;
  const JsonNode root = JsonNode::parse(catalog_text(provider), fmt::format("platforms/catalog/{}.json", provider));
  return parsed.emplace(provider, read_platform(root)).first->second;
}

Platform load_catalog(std::string_view name_or_path, const std::filesystem::path& relative_to, const JsonNode* at) {
  if (is_provider(name_or_path)) return catalog(name_or_path);
  if (!looks_like_path(name_or_path)) fail_unknown(name_or_path, at);
  return load_platform(relative_to / std::filesystem::path(name_or_path));
}

Gpu catalog_gpu(const std::string& catalog, const std::string& gpu_name) {
  const Platform platform = load_catalog(catalog, ".");
  if (const Gpu* gpu = find_named(platform.gpus, gpu_name)) return *gpu;
  const std::vector<std::string> names = names_of(platform.gpus);
  throw ConfigError(fmt::format("--gpu {}: not in the catalog {}; it has {}{}", gpu_name, platform.name, list_of(names),
                                did_you_mean(gpu_name, names)));
}

}  // namespace ganymede::platforms
