#pragma once
// An overlay, `ganymede.overlay/1`, replaces values of a catalog by measured ones. `import nccl-tests` writes one;
// users may write their own.
//
//   { "schema": "ganymede.overlay/1",
//     "source": "nccl-tests log of 2026-11-20, 2 x p4d.24xlarge",
//     "platform": { "instances": { "p4d.24xlarge": { "nic": { "latency": "21us" } } } },
//     "fit": { … } }                                     // the measured curve, and how good the fit is
//
// `platform` is a JSON merge patch (RFC 7396) on the platform's file. Entries of `gpus`, `instances`, `regions` and
// `storage` must exist in it, so that a misspelt name is an error and not a new entry that nobody uses.

#include <filesystem>
#include <string>
#include <string_view>

#include "common/json_fwd.hpp"
#include "platforms/platform.hpp"

namespace ganymede::platforms {

/// Loads a platform as load_catalog does and applies the overlay. Throws ConfigError for mistakes in either file; an
/// error of their combination names both files. `at` is the JSON value that names the catalog, if any.
Platform load_overlaid(std::string_view catalog, const std::filesystem::path& relative_to, const JsonNode& overlay,
                       const JsonNode* at = nullptr);

/// The platform that the members "catalog" and "overlay" of a scenario or study name; "overlay" is optional.
struct PlatformChoice {
  Platform platform;
  std::string catalog;            ///< as named; the platform's own name if the file states it in full
  bool inline_platform = false;   ///< the file states the platform in full
  std::filesystem::path folder;   ///< folder to which a path in `catalog` is relative
  std::filesystem::path overlay;  ///< empty: none
  std::string overlay_text;       ///< its content
};
PlatformChoice read_platform_choice(JsonObject& in);

/// The same for names from the command line; `overlay` is a path, or "" for none.
Platform load_platform_choice(const std::string& catalog, const std::string& overlay);

}  // namespace ganymede::platforms
