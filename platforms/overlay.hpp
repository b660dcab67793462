#pragma once
// What was measured of a platform, laid over its catalog: `ganymede.overlay/1`. `import nccl-tests` writes one, people
// may write their own.
//
//   { "schema": "ganymede.overlay/1",
//     "source": "nccl-tests log of 2026-11-20, 2 x p4d.24xlarge",
//     "platform": { "instances": { "p4d.24xlarge": { "nic": { "latency": "21us" } } } },
//     "fit": { … } }                                     // how good the fit is; not read
//
// `platform` is a JSON merge patch (RFC 7396) on the platform's file. What it names in `gpus`, `instances`, `regions`
// and `storage` must be there already: a misspelt name would otherwise stand there unused.

#include <filesystem>
#include <string>
#include <string_view>

#include "common/json.hpp"
#include "platforms/platform.hpp"

namespace ganymede {

/// The platform that load_catalog names, with the overlay's values in place. ConfigError for either's mistakes; those
/// of the combination name both files.
Platform load_overlaid(std::string_view catalog, const std::filesystem::path& relative_to, const JsonNode& overlay,
                       const JsonNode* at = nullptr);

/// What the members "catalog" and "overlay" (optional) of a scenario or study name.
struct PlatformChoice {
  Platform platform;
  std::string catalog;            ///< as named; of a platform that stands there in full, its own name
  bool inline_platform = false;   ///< it stands there in full
  std::filesystem::path folder;   ///< where a relative path in `catalog` starts
  std::filesystem::path overlay;  ///< empty: none
  std::string overlay_text;       ///< its content
};
PlatformChoice read_platform_choice(JsonObject& in);

/// The same from the command line, where an overlay is a path or "".
Platform load_platform_choice(const std::string& catalog, const std::string& overlay);

}  // namespace ganymede
