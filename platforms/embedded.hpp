#pragma once
// The generated table behind catalog.cpp; see embed.cmake.

#include <span>
#include <string_view>

namespace ganymede {

struct EmbeddedCatalog {
  std::string_view provider, text;
};

/// Sorted by provider.
std::span<const EmbeddedCatalog> embedded_catalogs();

}  // namespace ganymede
