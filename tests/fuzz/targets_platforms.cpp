// Readers of platforms and of price lists.

#include <algorithm>

#include "common/json.hpp"
#include "common/json_value.hpp"
#include "platforms/catalog.hpp"
#include "platforms/check.hpp"
#include "platforms/overlay.hpp"
#include "platforms/platform.hpp"
#include "platforms/price_list.hpp"
#include "sim/engine/platform_xml.hpp"
#include "target.hpp"

namespace ganymede::fuzz {
namespace {

/// As `import nccl-tests` and as a scenario that names the file.
void read_overlay(std::string_view bytes) {
  (void)platforms::load_overlaid("private", "", JsonNode::parse(bytes, "overlay.json"));
  const std::string file = file_of(bytes).string();
  JsonObject platform(JsonNode::wrap({{"catalog", "private"}, {"overlay", file}}, "scenario.json", "/"));
  (void)platforms::read_platform_choice(platform);
}

void read_prices(std::string_view bytes) {
  static const platforms::Platform kKnown = [] {
    platforms::Platform all;
    for (const auto& [provider, instances] : {std::pair{"aws", std::vector{"p3.2xlarge", "p3.8xlarge"}},
                                              std::pair{"azure", std::vector{"Standard_NC6s_v3"}},
                                              std::pair{"gcp", std::vector{"a2-highgpu-1g", "n1-standard-8+1xT4"}}}) {
      const platforms::Platform& platform = platforms::catalog(provider);
      for (const platforms::Gpu& gpu : platform.gpus) all.gpus.push_back(gpu);
      for (const char* instance : instances) all.instances.push_back(platform.instance(instance));
    }
    return all;
  }();
  platforms::PriceListOptions options;
  options.today = "2026-11-25";
  options.exchange = {{"EUR", 1.08}};
  const platforms::PriceList list = platforms::read_price_list({file_of(bytes)}, kKnown, options);
  const bool of_aws = std::all_of(list.prices.begin(), list.prices.end(), [](const platforms::ListedPrice& price) {
    return price.instance.starts_with("p3.");
  });
  if (of_aws) (void)platforms::merge_prices(platforms::catalog_text("aws"), list);
}

}  // namespace

std::vector<Target> platform_targets() {
  return {
      {"platform",
       "platforms/read_platform.cpp platforms/read_links.cpp platforms/read_prices.cpp platforms/money.cpp "
       "platforms/check.cpp common/units.cpp",
       [](std::string_view bytes) {
         (void)platforms::check_platform(platforms::read_platform(JsonNode::parse(bytes, "platform.json")),
                                         "2026-11-25");
       },
       "platform"},
      {"overlay", "platforms/overlay.cpp", read_overlay},
      {"price-list", "platforms/price_list.cpp platforms/price_list_json.cpp platforms/price_list_tools.cpp",
       read_prices},
      {"simgrid-xml", "sim/engine/platform_xml.cpp",
       [](std::string_view bytes) { (void)sim::read_platform_xml("platform.xml", std::string(bytes)); }},
  };
}

}  // namespace ganymede::fuzz
