#pragma once
// Where a server listens, as --listen says it.

#include <string>

namespace ganymede::serve {

struct ListenAddress {
  std::string host;
  int port = 0;
};

/// Reads "127.0.0.1:9464"; the host may be left out, and an IPv6 address stands in brackets. Throws ConfigError, which
/// names --listen.
ListenAddress read_listen_address(const std::string& text);

}  // namespace ganymede::serve
